package org.kquota.broker;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;

/**
 * Ports of 127.0.0.1 that stay ours, also while the broker that uses them is down. They are bound, so that no other process is given one of them, as a server or as
 * the local end of a connection. A broker, which reuses addresses, may bind them as well, because nothing here listens.
 */
final class ReservedPorts implements AutoCloseable {
    private final List<Socket> sockets = new ArrayList<>();

    int next() throws IOException {
        Socket socket = new Socket();
        sockets.add(socket);
        socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        // Not before: it would be given a port that another process has reserved in the same way.
        socket.setReuseAddress(true);
        return socket.getLocalPort();
    }

    @Override
    public void close() throws IOException {
        for (Socket socket : sockets) {
            socket.close();
        }
    }
}
