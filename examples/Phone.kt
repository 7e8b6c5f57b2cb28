/*
 * A phone that loses nothing: what is heard goes to a file first, and from there to Waymark.
 *
 *     kotlinc Phone.kt -include-runtime -d phone.jar
 *     java -jar phone.jar URL STAFF_ID QUEUE [TOKEN]
 *
 * Each line of the input is a beacon and its strength: `C2A628384B08 -67`. At the end of the input
 * it ends as soon as the queue is empty; killed at any time and started again, it goes on where it
 * was. What Waymark rejects is kept in QUEUE.rejected. One process for each queue. Nothing but
 * Kotlin's own library and what Android has, too.
 */
import java.io.File
import java.io.IOException
import java.io.RandomAccessFile
import java.net.HttpURLConnection
import java.net.URI
import java.nio.channels.FileChannel
import java.nio.file.Files
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.util.UUID
import kotlin.concurrent.thread
import kotlin.math.max
import kotlin.math.min
import kotlin.math.pow
import kotlin.math.roundToInt
import kotlin.random.Random
import kotlin.system.exitProcess

const val BATCH = 500 // Waymark takes 1000 and 384 KiB
const val TIMEOUT_MS = 10_000
const val LONGEST_PAUSE_SECONDS = 60.0
const val NO_CLOCK_BEFORE = 1577836800 // 2020: what says so has lost its clock
const val REWRITE_AFTER = 1000 // removed detections that the file may still hold
const val DEEPEST_JSON = 50
val SAFE = setOf("stored", "duplicate", "queued") // Waymark has it, on some disk of its own

class Detection(val eventId: String, val json: String)

/** Detections on disk, oldest first: a line for each (+), and one for each that was removed (-). */
class Queue(private val path: File) {
    private val heard = LinkedHashMap<String, Detection>()
    private lateinit var file: RandomAccessFile
    private var removed = 0

    init {
        val text = if (path.exists()) path.readText() else ""
        // The last line may be half written: nothing was promised of it.
        for (line in text.substringBeforeLast('\n', "").lines().filter { it.isNotEmpty() }) {
            val eventId = line.substring(1, 37)
            if (line[0] == '-') heard.remove(eventId)
            else heard[eventId] = Detection(eventId, line.substring(37))
        }
        rewrite()
    }

    val isEmpty: Boolean @Synchronized get() = heard.isEmpty()

    /** What this returned from survives a power cut. */
    @Synchronized
    fun add(detection: Detection) {
        append(file, kept(detection))
        heard[detection.eventId] = detection
    }

    @Synchronized
    fun oldest(count: Int): List<Detection> = heard.values.take(count)

    /** Lays aside what nobody wants, then forgets it and what is safe elsewhere. */
    @Synchronized
    fun settle(safe: List<Detection>, rejected: Map<Detection, String>) {
        if (rejected.isNotEmpty()) RandomAccessFile("$path.rejected", "rw").use { aside ->
            aside.seek(aside.length())
            append(aside, rejected.map { "${it.key.json} ${it.value}\n" }.joinToString(""))
        }
        val gone = safe + rejected.keys
        if (gone.isEmpty()) return
        for (detection in gone) heard.remove(detection.eventId)
        removed += gone.size
        if (removed > REWRITE_AFTER) rewrite()
        else append(file, gone.joinToString("") { "-${it.eventId}\n" })
    }

    private fun kept(detection: Detection) = "+${detection.eventId}${detection.json}\n"

    /** Writes all of it, to the disk, or nothing: the disk may be full. */
    private fun append(file: RandomAccessFile, lines: String) {
        val end = file.filePointer
        try {
            file.write(lines.toByteArray())
            file.fd.sync()
        } catch (failure: IOException) {
            file.setLength(end)
            throw failure
        }
    }

    /** A new file, whole before it takes the place of the old one. */
    private fun rewrite() {
        val new = RandomAccessFile("$path.new", "rw")
        new.setLength(0) // of one that was killed
        append(new, heard.values.joinToString("", transform = ::kept))
        Files.move(File("$path.new").toPath(), path.toPath(), ATOMIC_MOVE)
        if (::file.isInitialized) file.close()
        file = new
        removed = 0
        FileChannel.open(path.parentFile.toPath()).use { folder ->
            folder.force(true) // else a power cut may bring the old file back
        }
    }
}

class Answer(val status: Int, val retryAfter: String?, val text: String)

/** Sends batches; each answer says how long to wait before the next. */
class Waymark(url: String, private val token: String?) {
    private val address = URI("${url.trimEnd('/')}/api/v1/detections").toURL()
    private var failures = 0
    private var most = BATCH

    /** Sends the oldest detections; returns how many milliseconds to wait. */
    fun send(queue: Queue): Long {
        val batch = queue.oldest(most)
        if (batch.isEmpty()) return 200
        val detections = batch.joinToString(",") { it.json }
        val sentAt = System.currentTimeMillis() / 1000
        val answer = try {
            post("""{"detections":[$detections],"sent_at":$sentAt}""".toByteArray())
        } catch (failure: IOException) {
            return pause("no answer: $failure") // or half of one
        }
        val content = contentOf(answer.text)
        val results = resultsOf(content, batch) // a 503 may have stored some
        val rejected = results.filterValues { it["status"] == "rejected" } // it would be again
            .mapValues { "${it.value["errors"]}" }
        for ((detection, why) in rejected) say("rejected: ${detection.json}: $why")
        queue.settle(results.filterValues { it["status"] in SAFE }.keys.toList(), rejected)
        val clock = content["clock"] ?: "right"
        val skew = content["clock_skew_seconds"]
        if (clock != "right") say("this clock is $clock by $skew s: set it")
        if (answer.status in setOf(200, 202) && results.size == batch.size) {
            failures = 0
            most = BATCH
            return 0
        }
        if (answer.status == 413) most = max(1, most / 2)
        // Also a 400 and a 401 lose nothing: somebody has to correct the address or the token. A
        // 200 without results is the page of some wireless network.
        return pause("${answer.status}: ${answer.text.take(200)}", answer.retryAfter)
    }

    private fun post(body: ByteArray): Answer {
        val connection = address.openConnection() as HttpURLConnection
        // A POST: libraries send a GET again by themselves, and would double what has no event id.
        // Java's sends a POST again, too, unless it is told the length first.
        connection.requestMethod = "POST"
        connection.setFixedLengthStreamingMode(body.size)
        connection.connectTimeout = TIMEOUT_MS
        connection.readTimeout = TIMEOUT_MS
        connection.instanceFollowRedirects = false // to the page of some wireless network
        connection.setRequestProperty("Content-Type", "application/json")
        if (token != null) connection.setRequestProperty("Authorization", "Bearer $token")
        connection.doOutput = true
        connection.outputStream.use { it.write(body) }
        val status = connection.responseCode
        val content = if (status < 400) connection.inputStream else connection.errorStream
        val text = content?.use { it.readBytes().toString(Charsets.UTF_8) } ?: ""
        return Answer(status, connection.getHeaderField("Retry-After"), text)
    }

    /** How long to wait: as told, else twice as long each time, never all at once. */
    private fun pause(why: String, retryAfter: String? = null): Long {
        failures += 1
        var seconds = 2.0.pow(min(failures, 10)) / 2
        val wanted = retryAfter?.toUIntOrNull()?.toDouble()
        if (wanted != null) seconds = max(wanted, if (failures > 3) seconds else 0.0)
        seconds = min(seconds, LONGEST_PAUSE_SECONDS)
        say("$why; again in about ${seconds.roundToInt()} s")
        return (seconds * 1000 * Random.nextDouble(0.75, 1.25)).toLong()
    }
}

/** What became of each detection. */
fun resultsOf(content: Map<*, *>, batch: List<Detection>): Map<Detection, Map<*, *>> {
    val results = (content["results"] as? List<*>).orEmpty().filterIsInstance<Map<*, *>>()
    return results.mapNotNull { result ->
        batch.getOrNull(result["index"] as? Int ?: -1)?.let { it to result }
    }.toMap()
}

fun contentOf(text: String): Map<*, *> = try {
    Json(text).whole() as? Map<*, *>
} catch (_: RuntimeException) {
    null // no JSON
} ?: emptyMap<String, Any>()

/** Reads JSON, which Java's library does not: on Android, `org.json` can take its place. */
class Json(private val text: String) {
    private var at = 0

    fun whole(): Any? = value(0).also { require(text.substring(at).isBlank()) }

    private fun value(depth: Int): Any? {
        require(depth < DEEPEST_JSON)
        return when (next()) {
            '{' -> items('}') { Pair(value(depth + 1), value(depth + 1)) }.toMap()
            '[' -> items(']') { value(depth + 1) }
            '"' -> string()
            else -> word()
        }
    }

    /** The next character that is no blank and parts nothing. */
    private fun next(): Char {
        while (text[at].isWhitespace() || text[at] in ",:") at++
        return text[at++]
    }

    private fun <T> items(end: Char, item: () -> T): List<T> {
        val items = ArrayList<T>()
        while (next() != end) {
            at--
            items.add(item())
        }
        return items
    }

    private fun string(): String {
        val string = StringBuilder()
        while (true) {
            val letter = text[at++]
            if (letter == '"') return string.toString()
            string.append(if (letter == '\\') escaped(text[at++]) else letter)
        }
    }

    private fun escaped(letter: Char): Char = when (letter) {
        'u' -> text.substring(at, at + 4).toInt(16).toChar().also { at += 4 }
        'n' -> '\n'
        't' -> '\t'
        'r' -> '\r'
        'b' -> '\b'
        'f' -> '\u000c'
        else -> letter
    }

    private fun word(): Any? {
        val begin = at - 1
        while (at < text.length && text[at] !in ",]}" && !text[at].isWhitespace()) at++
        return when (val word = text.substring(begin, at)) {
            "true", "false" -> word == "true"
            "null" -> null
            else -> word.toIntOrNull() ?: word.toDouble()
        }
    }
}

/** The detection of a line, null where it is none. */
fun heardIn(line: String, staffId: String): Detection? {
    val (beacon, strength) =
        Regex("""\s*(\S.*)\s(\S+)\s*""").matchEntire(line)?.destructured ?: return null
    val rssi = strength.toDoubleOrNull()?.takeIf { it.isFinite() }?.roundToInt() ?: return null
    // A UUID, never a counter: after a reinstall a counter begins anew, and what it names is taken
    // for what it named before.
    val eventId = "${UUID.randomUUID()}"
    val now = System.currentTimeMillis() / 1000
    // Without it, the server's time counts.
    val timestamp = if (now < NO_CLOCK_BEFORE) "" else ""","timestamp":$now"""
    val names = """"staff_id":${quoted(staffId)},"mac":${quoted(beacon)},"event_id":"$eventId""""
    return Detection(eventId, """{$names,"rssi":$rssi$timestamp}""")
}

fun quoted(text: String): String {
    val escaped = text.replace(Regex("""["\\\p{Cntrl}]""")) { "\\u%04x".format(it.value[0].code) }
    return "\"$escaped\""
}

/** Tells the person behind the phone. */
fun say(text: String) = System.err.println(text)

fun main(arguments: Array<String>) {
    val (url, staffId, path) = arguments
    val queue = Queue(File(path).absoluteFile)
    val waymark = Waymark(url, arguments.getOrNull(3))
    var failure: IOException? = null
    val listener = thread(isDaemon = true) {
        try {
            System.`in`.bufferedReader().forEachLine { line ->
                val detection = heardIn(line, staffId)
                if (detection == null) say("not heard: $line")
                else {
                    queue.add(detection)
                    println(detection.eventId) // from here on it is safe
                }
            }
        } catch (reason: IOException) { // a full disk
            failure = reason
        }
    }
    while (listener.isAlive || !queue.isEmpty) Thread.sleep(waymark.send(queue))
    failure?.let {
        say("hears nothing any more: $it")
        exitProcess(1)
    }
}
