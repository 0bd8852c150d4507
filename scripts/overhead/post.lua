-- What wrk sends: one body, read from the file that BODY names; its last line is what it measured, as JSON.
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer sk-bench"
wrk.body = io.open(os.getenv("BODY")):read("*a")

function done(summary, latency)
    local failed = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status
    local per_second = summary.requests / (summary.duration / 1e6)
    io.write(string.format('{"rps": %.1f, "p50_ms": %.4f, "failed": %d}\n', per_second, latency:percentile(50) / 1e3, failed))
end
