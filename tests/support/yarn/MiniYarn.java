import java.io.FileOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * A resource manager and a node manager of YARN in this process, on loopback, until standard input ends.
 *
 * Arguments: the file that the configuration for clients is written to, once all is up, and the port of the
 * resource manager's REST API.  Run by tests/support/yarn.
 */
public final class MiniYarn {
    private static final String[] ADDRESSES = {
        "resourcemanager.address", "resourcemanager.admin.address", "resourcemanager.scheduler.address",
        "resourcemanager.resource-tracker.address", "nodemanager.address", "nodemanager.localizer.address",
        "nodemanager.webapp.address",
    };

    public static void main(String[] args) throws Exception {
        YarnConfiguration conf = new YarnConfiguration();
        conf.set("yarn.minicluster.fixed.ports", "true");
        conf.set("yarn.resourcemanager.hostname", "127.0.0.1");
        for (String name : ADDRESSES) {
            conf.set("yarn." + name, "127.0.0.1:0");
        }
        conf.set("yarn.resourcemanager.webapp.address", "127.0.0.1:" + args[1]);
        conf.set("yarn.nodemanager.resource.memory-mb", "4096");
        conf.set("yarn.scheduler.minimum-allocation-mb", "256");
        conf.set("yarn.nodemanager.vmem-check-enabled", "false");
        conf.set("yarn.nodemanager.pmem-check-enabled", "false");
        // a disk of a developer may be fuller than YARN likes
        conf.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "100");
        conf.set("yarn.scheduler.capacity.root.queues", "default");
        conf.set("yarn.scheduler.capacity.root.default.capacity", "100");
        conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "0.8");
        MiniYARNCluster cluster = new MiniYARNCluster("mini", 1, 1, 1);
        cluster.init(conf);
        cluster.start();
        Path draft = Path.of(args[0] + ".draft");
        try (FileOutputStream out = new FileOutputStream(draft.toFile())) {
            cluster.getConfig().writeXml(out);
        }
        Files.move(draft, Path.of(args[0]), StandardCopyOption.ATOMIC_MOVE);
        while (System.in.read() >= 0) {
        }
        cluster.stop();
        System.exit(0);
    }
}
