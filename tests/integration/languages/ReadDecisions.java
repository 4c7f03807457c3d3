import com.fasterxml.jackson.databind.ObjectMapper;
import org.kquota.decision.Decision;
import org.kquota.decision.DecisionFile;
import org.kquota.decision.DecisionFormat;
import org.kquota.decision.Result;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** Reads the decision file named on each line of its input as the broker does, and prints what the broker acts on. */
public final class ReadDecisions {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Result<Decision> result = new DecisionFile(Path.of(line)).read().then(DecisionFormat::parse);
            Map<String, Object> read = new LinkedHashMap<>();
            if (result.isPresent()) {
                Decision decision = result.value();
                read.put("schema_version", decision.schemaVersion());
                read.put("cluster_id", decision.clusterId());
                read.put("broker_id", decision.brokerId());
                read.put("sequence", decision.sequence());
                read.put("mode", decision.mode().text());
                read.put("state", decision.state().name());
                read.put("factor", decision.factor());
                read.put("fallback", decision.fallback());
                read.put("boot_id", decision.bootId());
                read.put("valid_until_uptime_ms", decision.validUntilUptimeMs());
            } else {
                read.put("refused", result.reason());
            }
            System.out.println(mapper.writeValueAsString(read));
            System.out.flush();
        }
    }
}
