import io.trino.server.Server;

/** Starts Trino as its own `TrinoServer` does, which is not on Maven; the argument is the version. */
class Start {
    public static void main(String[] arguments) {
        new Server().start(arguments[0]);
    }
}
