import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.Permission;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs mqadmin commands one after the other in one JVM: a start costs a second or two, a command a fraction of it.
 * Each line of standard input is a command with its arguments, separated by tabs; each answer is "BEGIN n", what the
 * command printed on both streams, and "END n STATUS MILLIS". A command that calls System.exit ends only itself.
 */
public class Admin {
    private static final class Exit extends SecurityException {
        private final int status;

        Exit(int status) {
            this.status = status;
        }
    }

    @SuppressWarnings("removal") // the only way to catch exit() in the JDKs these versions of RocketMQ support
    private static final class NoExit extends SecurityManager {
        @Override
        public void checkPermission(Permission permission) {
        }

        @Override
        public void checkPermission(Permission permission, Object context) {
        }

        @Override
        public void checkExit(int status) {
            for (StackTraceElement frame : Thread.currentThread().getStackTrace()) {
                if (frame.getClassName().equals("Admin") && frame.getMethodName().equals("finish")) {
                    return;
                }
            }
            throw new Exit(status);
        }
    }

    @SuppressWarnings("removal")
    public static void main(String[] args) throws Exception {
        System.setSecurityManager(new NoExit());
        PrintStream out = System.out;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int n = 0;
        for (String line = in.readLine(); line != null; line = in.readLine(), n++) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream capture = new PrintStream(printed, true, "UTF-8");
            System.setOut(capture);
            System.setErr(capture);
            int status = 0;
            long began = System.nanoTime();
            try {
                MQAdminStartup.main0(line.isEmpty() ? new String[0] : line.split("\t"), null);
            } catch (Exit e) {
                status = e.status;
            } catch (Throwable e) {
                status = 1;
                e.printStackTrace(capture);
            }
            capture.flush();
            out.println("BEGIN " + n);
            out.write(printed.toByteArray());
            out.println();
            out.println("END " + n + " " + status + " " + (System.nanoTime() - began) / 1000000);
            out.flush();
        }
        finish();
    }

    private static void finish() {
        System.exit(0);
    }
}
