// A phone that loses nothing: what is heard goes to a file first, and from there to Waymark.
//
//     swiftc Phone.swift -o phone
//     phone URL STAFF_ID QUEUE [TOKEN]
//
// Each line of the input is a beacon and its strength: `C2A628384B08 -67`. At the end of the input
// it ends as soon as the queue is empty; killed at any time and started again, it goes on where it
// was. What Waymark rejects is kept in QUEUE.rejected. One process for each queue. Nothing but
// Foundation.
import Foundation
#if canImport(FoundationNetworking)
    import FoundationNetworking // Linux
#endif

let mostInBatch = 500 // Waymark takes 1000 and 384 KiB
let timeoutSeconds = 10.0
let longestPauseSeconds = 60.0
let noClockBefore = 1_577_836_800 // 2020: what says so has lost its clock
let rewriteAfter = 1000 // removed detections that the file may still hold
let safe: Set = ["stored", "duplicate", "queued"] // Waymark has it, on some disk of its own

struct Detection: Sendable {
    let eventID: String
    let json: String

    /// The detection of a line, nil where it is none.
    init?(line: String, staffID: String) {
        let words = line.trimmingCharacters(in: .whitespaces)
        guard let gap = words.lastIndex(where: \.isWhitespace),
            let strength = Double(words[words.index(after: gap)...]),
            let rssi = Int(exactly: strength.rounded())
        else { return nil }
        let beacon = words[..<gap].trimmingCharacters(in: .whitespaces)
        // A UUID, never a counter: after a reinstall a counter begins anew, and what it names is
        // taken for what it named before.
        eventID = UUID().uuidString
        var fields: [String: Any] = ["staff_id": staffID, "mac": beacon, "rssi": rssi]
        fields["event_id"] = eventID
        let now = Int(Date().timeIntervalSince1970)
        if now >= noClockBefore { fields["timestamp"] = now } // else the server's time counts
        guard let data = try? JSONSerialization.data(withJSONObject: fields) else { return nil }
        json = String(decoding: data, as: UTF8.self)
    }

    /// What a line of the queue holds.
    init(kept line: Substring) {
        eventID = String(line.prefix(36))
        json = String(line.dropFirst(36))
    }
}

/// Detections on disk, oldest first: a line for each (+), and one for each that was removed (-).
final class Queue: @unchecked Sendable {
    private let changing = NSLock()
    private let path: String
    private var file = FileHandle.nullDevice
    private var heard: [Detection] = []
    private var removed = 0
    private var hasEnded = false
    private(set) var failure: Error?

    init(path: String) throws {
        self.path = path
        let exists = FileManager.default.fileExists(atPath: path)
        let data = exists ? try Data(contentsOf: URL(fileURLWithPath: path)) : Data()
        // The last line may be half written: nothing was promised of it.
        let whole = data[..<(data.lastIndex(of: UInt8(ascii: "\n")) ?? data.startIndex)]
        var gone: Set<Substring> = []
        let lines = String(decoding: whole, as: UTF8.self).split(separator: "\n")
        for line in lines where line.hasPrefix("-") { gone.insert(line.dropFirst()) }
        for line in lines where line.hasPrefix("+") && !gone.contains(line.dropFirst().prefix(36)) {
            heard.append(Detection(kept: line.dropFirst()))
        }
        try rewrite()
    }

    /// Whether it is empty and stays so.
    var isDone: Bool { changing.withLock { hasEnded && heard.isEmpty } }

    /// Nothing more is heard; a failure says why.
    func end(_ failure: Error? = nil) {
        changing.withLock { (hasEnded, self.failure) = (true, failure) }
    }

    /// What this returned from survives a power cut.
    func add(_ detection: Detection) throws {
        try changing.withLock {
            try append(Self.kept(detection), to: file)
            heard.append(detection)
        }
    }

    func oldest(_ count: Int) -> [Detection] {
        changing.withLock { Array(heard.prefix(count)) }
    }

    /// Lays aside what nobody wants, then forgets it and what is safe elsewhere.
    func settle(_ safe: [Detection], rejected: [(Detection, String)]) throws {
        try changing.withLock {
            if !rejected.isEmpty {
                let aside = try opened("\(path).rejected", O_APPEND)
                try append(rejected.map { "\($0.json) \($1)\n" }.joined(), to: aside)
            }
            let gone = Set((safe + rejected.map(\.0)).map(\.eventID))
            if gone.isEmpty { return }
            heard.removeAll { gone.contains($0.eventID) }
            removed += gone.count
            if removed > rewriteAfter {
                try rewrite()
            } else {
                try append(gone.map { "-\($0)\n" }.joined(), to: file)
            }
        }
    }

    private static func kept(_ detection: Detection) -> String {
        "+\(detection.eventID)\(detection.json)\n"
    }

    /// Writes all of it, to the disk, or nothing: the disk may be full.
    private func append(_ lines: String, to file: FileHandle) throws {
        let end = try file.seekToEnd()
        do {
            try file.write(contentsOf: Data(lines.utf8))
            try file.synchronize()
            #if canImport(Darwin)
                // There, the flash may still keep it in a memory of its own.
                _ = fcntl(file.fileDescriptor, F_FULLFSYNC)
            #endif
        } catch {
            try? file.truncate(atOffset: end)
            throw error
        }
    }

    /// A new file, whole before it takes the place of the old one.
    private func rewrite() throws {
        let new = try opened("\(path).new", O_TRUNC)
        try append(heard.map(Self.kept).joined(), to: new)
        _ = try checked(rename("\(path).new", path))
        file = new
        removed = 0
        let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let folder = try checked(open(parent, O_RDONLY))
        defer { close(folder) }
        _ = try checked(fsync(folder)) // else a power cut may bring the old file back
    }

    private func opened(_ path: String, _ how: Int32) throws -> FileHandle {
        let descriptor = try checked(open(path, O_WRONLY | O_CREAT | how, 0o600))
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    private func checked(_ result: Int32) throws -> Int32 {
        if result < 0 { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        return result
    }
}

/// Sends batches; each answer says how long to wait before the next.
final class Waymark {
    private let address: URL
    private let token: String?
    private var failures = 0
    private var most = mostInBatch

    init(url: URL, token: String?) {
        address = url.appendingPathComponent("api/v1/detections")
        self.token = token
    }

    /// Sends the oldest detections; returns how many seconds to wait.
    func send(_ queue: Queue) async throws -> Double {
        let batch = queue.oldest(most)
        if batch.isEmpty { return 0.2 }
        let sentAt = Int(Date().timeIntervalSince1970)
        let items = batch.map(\.json).joined(separator: ",")
        let response: HTTPURLResponse
        let body: Data
        do {
            (response, body) = try await post("{\"detections\":[\(items)],\"sent_at\":\(sentAt)}")
        } catch {
            return pause("no answer: \(error.localizedDescription)") // or half of one
        }
        let answer = (try? JSONSerialization.jsonObject(with: body)) as? [String: Any] ?? [:]
        var results: [Int: [String: Any]] = [:] // a 503 may have stored some
        for case let result as [String: Any] in answer["results"] as? [Any] ?? [] {
            let index = result["index"] as? Int ?? -1
            if batch.indices.contains(index) { results[index] = result }
        }
        func those(_ isWanted: (String) -> Bool) -> [Int] {
            results.filter { isWanted($1["status"] as? String ?? "") }.keys.sorted()
        }
        let rejected = those { $0 == "rejected" } // it would be rejected again
            .map { (batch[$0], "\(results[$0]?["errors"] ?? "")") }
        for (detection, why) in rejected { say("rejected: \(detection.json): \(why)") }
        try queue.settle(those(safe.contains).map { batch[$0] }, rejected: rejected)
        if let clock = answer["clock"] as? String, clock != "right" {
            say("this clock is \(clock) by \(answer["clock_skew_seconds"] ?? "?") s: set it")
        }
        if [200, 202].contains(response.statusCode), results.count == batch.count {
            (failures, most) = (0, mostInBatch)
            return 0
        }
        if response.statusCode == 413 { most = max(1, most / 2) }
        // Also a 400 and a 401 lose nothing: somebody has to correct the address or the token. A
        // 200 without results is the page of some wireless network.
        let text = String(decoding: body.prefix(200), as: UTF8.self)
        let retryAfter = response.value(forHTTPHeaderField: "Retry-After")
        return pause("\(response.statusCode): \(text)", retryAfter.flatMap(UInt32.init))
    }

    private func post(_ body: String) async throws -> (HTTPURLResponse, Data) {
        var request = URLRequest(url: address, timeoutInterval: timeoutSeconds)
        // A POST: libraries send a GET again by themselves, and would double what has no event id.
        request.httpMethod = "POST"
        request.httpBody = Data(body.utf8)
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        let (data, response) = try await URLSession.shared.data(for: request)
        guard let response = response as? HTTPURLResponse else { throw URLError(.unknown) }
        return (response, data)
    }

    /// How long to wait: as told, else twice as long each time, never all at once.
    private func pause(_ why: String, _ retryAfter: UInt32? = nil) -> Double {
        failures += 1
        var seconds = pow(2.0, Double(min(failures, 10))) / 2
        if let retryAfter { seconds = max(Double(retryAfter), failures > 3 ? seconds : 0) }
        seconds = min(seconds, longestPauseSeconds)
        say("\(why); again in about \(Int(seconds.rounded())) s")
        return seconds * Double.random(in: 0.75...1.25)
    }
}

/// Tells the person behind the phone.
func say(_ text: String) {
    FileHandle.standardError.write(Data("\(text)\n".utf8))
}

let arguments = CommandLine.arguments
guard arguments.count > 3, let url = URL(string: arguments[1]) else {
    say("usage: phone URL STAFF_ID QUEUE [TOKEN]")
    exit(2)
}
let staffID = arguments[2]
let queue = try Queue(path: arguments[3])
let waymark = Waymark(url: url, token: arguments.count > 4 ? arguments[4] : nil)
Thread.detachNewThread {
    do {
        while let line = readLine() {
            guard let detection = Detection(line: line, staffID: staffID) else {
                say("not heard: \(line)")
                continue
            }
            try queue.add(detection)
            // From here on it is safe.
            FileHandle.standardOutput.write(Data("\(detection.eventID)\n".utf8))
        }
        queue.end()
    } catch { // a full disk
        queue.end(error)
    }
}
while !queue.isDone {
    try await Task.sleep(nanoseconds: UInt64(try await waymark.send(queue) * 1e9))
}
if let failure = queue.failure {
    say("hears nothing any more: \(failure)")
    exit(1)
}
