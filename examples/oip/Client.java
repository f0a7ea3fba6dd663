import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Asks a gateway for a prediction with Java's own library, which has no JSON: an application would
 * take a library for that.
 *
 * Usage: java Client.java URL MODEL NAME SHAPE < numbers, such as NAME input and SHAPE 1,1,8,8
 */
class Client {
    public static void main(String[] words) throws Exception {
        String numbers = new String(System.in.readAllBytes()).trim().replaceAll("\\s+", ",");
        String body = String.format(
            "{\"inputs\": [{\"name\": \"%s\", \"datatype\": \"FP32\", \"shape\": [%s], \"data\": [%s]}]}",
            words[2], words[3], numbers);
        URI place = URI.create(words[0] + "/v2/models/" + words[1] + "/infer");
        HttpRequest request = HttpRequest.newBuilder(place)
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
        String answer = HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body();
        Matcher data = Pattern.compile("\"outputs\".*?\"data\": *\\[([^\\]]*)\\]").matcher(answer);
        if (!data.find()) throw new IllegalStateException(answer);
        System.out.println(data.group(1).replace(",", " "));
    }
}
