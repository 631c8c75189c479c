import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** etcd's own lock service through its HTTP gateway: a lease for each thread, as a session. */
public final class EtcdRival {
    private static final Pattern KEY = Pattern.compile("\"key\":\"([^\"]+)\"");
    private static final Pattern LEASE = Pattern.compile("\"ID\":\"(\\d+)\"");

    private final HttpClient http = HttpClient.newHttpClient();
    private final String address;

    private EtcdRival(String address) {
        this.address = address;
    }

    private String ask(String what, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(address + what))
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
        HttpResponse<String> said = http.send(request, HttpResponse.BodyHandlers.ofString());
        if (said.statusCode() != 200) {
            throw new IllegalStateException(what + ": " + said.body());
        }
        return said.body();
    }

    private static String find(Pattern what, String where) {
        Matcher found = what.matcher(where);
        if (!found.find()) {
            throw new IllegalStateException(where);
        }
        return found.group(1);
    }

    private Loop.Held open(String name) throws Exception {
        String lease = find(LEASE, ask("/v3/lease/grant", "{\"TTL\":60}"));
        String encoded = Base64.getEncoder().encodeToString(("rival/" + name).getBytes());
        return new Loop.Held() {
            private String key;

            @Override
            public void take() throws Exception {
                key = find(KEY, ask("/v3/lock/lock",
                        "{\"name\":\"" + encoded + "\",\"lease\":\"" + lease + "\"}"));
            }

            @Override
            public void give() throws Exception {
                ask("/v3/lock/unlock", "{\"key\":\"" + key + "\"}");
            }
        };
    }

    public static void main(String[] args) throws Exception {
        Loop.measure(new EtcdRival(args[0])::open, args);
    }
}
