import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;

/** Prints for each chain of clients if a broker with this truststore accepts it: java TrustedChains.java TRUSTSTORE CHAIN... */
class TrustedChains {
    public static void main(String[] files) throws GeneralSecurityException, IOException {
        KeyStore truststore = KeyStore.getInstance(KeyStore.getDefaultType());
        truststore.load(null, null);
        truststore.setCertificateEntry("root", certificates(files[0])[0]);
        // As Kafka makes its own.
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(truststore);
        TrustManager trust = factory.getTrustManagers()[0];
        for (String file : Arrays.copyOfRange(files, 1, files.length)) {
            System.out.println(verdict((X509TrustManager) trust, certificates(file)));
        }
    }

    private static String verdict(X509TrustManager trust, X509Certificate[] chain) {
        try {
            trust.checkClientTrusted(chain, "EC");
            return "accepted";
        } catch (CertificateException refused) {
            return "refused: " + refused.getMessage();
        }
    }

    private static X509Certificate[] certificates(String file) throws GeneralSecurityException, IOException {
        try (var in = Files.newInputStream(Path.of(file))) {
            return CertificateFactory.getInstance("X.509").generateCertificates(in).toArray(new X509Certificate[0]);
        }
    }
}
