package top

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// A Unit determines how a value is printed.
type Unit string

// These are the possible units.
const (
	Number  Unit = ""        // a whole number
	Rate    Unit = "a"       // number per second
	Percent Unit = "%"       // percentage of one core
	Bytes   Unit = "bytes"   // size of memory
	Latency Unit = "latency" // duration in seconds
	Age     Unit = "age"     // age in seconds
)

// A Row is one value of each node.
type Row struct {
	Section string // heading above the row
	Key     string // name of the row in JSON
	Name    string
	Unit    Unit
	Fault   bool // whether a value above zero is a fault

	// shared means that the total for several nodes is the greatest value of any node, not the sum. It
	// is set for values that are the same on every node, such as the length of a queue in the database,
	// and for values whose sum has no meaning, such as a median.
	shared bool
	read   func(span) (float64, bool)
}

// These are the headings of the sections.
const (
	node     = "Node"
	requests = "Requests a second"
	people   = "Sign-in, a second"
	media    = "Sockets and calls"
	queues   = "Waiting"
	errs     = "Errors, a second"
)

// Rows are the values of a node, in the order in which they are printed.
var Rows = []Row{
	{Section: node, Key: "uptime_seconds", Name: "Uptime", Unit: Age, shared: true, read: uptime},
	{Section: node, Key: "cpu_percent", Name: "CPU", Unit: Percent, read: cpu},
	{Section: node, Key: "memory_bytes", Name: "Memory", Unit: Bytes, read: gauge("process_resident_memory_bytes")},
	{Section: node, Key: "goroutines", Name: "Goroutines", read: gauge("go_goroutines")},
	{Section: node, Key: "open_files", Name: "Open files", read: gauge("process_open_fds")},
	{
		Section: node,
		Key:     "database_connections",
		Name:    "Database connections",
		read:    gauge("selvage_database_connections_open"),
	},
	{
		Section: node,
		Key:     "database_changes",
		Name:    "Database changes/s",
		Unit:    Rate,
		read:    rate("selvage_database_changes_total"),
	},

	{Section: requests, Key: "requests", Name: "All", Unit: Rate, read: responses()},
	{Section: requests, Key: "requests_oauth", Name: "OAuth", Unit: Rate, read: responses(below(oauthPaths...))},
	{
		Section: requests,
		Key:     "requests_fabric",
		Name:    "Fabric API",
		Unit:    Rate,
		read:    responses(below(fabricPaths...)),
	},
	{
		Section: requests,
		Key:     "requests_recordings",
		Name:    "Recordings",
		Unit:    Rate,
		read:    responses(below(recordingPaths...)),
	},
	{Section: requests, Key: "uploads", Name: "of them uploads", Unit: Rate, read: responses(isUpload)},
	{
		Section: requests,
		Key:     "requests_dashboard",
		Name:    "Dashboard",
		Unit:    Rate,
		read:    responses(below(dashboardPaths...)),
	},
	{Section: requests, Key: "requests_pages", Name: "Other pages", Unit: Rate, read: responses(isPage)},
	{Section: requests, Key: "latency_p50_seconds", Name: "Median", Unit: Latency, shared: true, read: latency(.5)},
	{
		Section: requests,
		Key:     "latency_p99_seconds",
		Name:    "99th percentile",
		Unit:    Latency,
		shared:  true,
		read:    latency(.99),
	},

	{Section: people, Key: "logins", Name: "Logins", Unit: Rate, read: events("login")},
	{
		Section: people,
		Key:     "logins_refused",
		Name:    "Refused logins",
		Unit:    Rate,
		read:    events("login_refused", "login_throttled", "upstream_refused"),
	},
	{Section: people, Key: "codes", Name: "Codes", Unit: Rate, read: events("code")},
	{Section: people, Key: "tokens", Name: "Tokens", Unit: Rate, read: identity(isToken)},

	{Section: media, Key: "sockets", Name: "Open sockets", read: gauge("selvage_relay_sockets")},
	{Section: media, Key: "online", Name: "Subscribers online", read: gauge("selvage_relay_online")},
	{
		Section: media,
		Key:     "relay_requests",
		Name:    "Requests/s",
		Unit:    Rate,
		read:    rate("selvage_relay_messages_total"),
	},
	{Section: media, Key: "messages", Name: "Messages/s", Unit: Rate, read: rate("selvage_messages_total")},
	{Section: media, Key: "calls", Name: "Calls", read: gauge("selvage_calls")},
	{Section: media, Key: "rooms", Name: "Rooms", read: gauge("selvage_rooms")},
	{
		Section: media,
		Key:     "phones",
		Name:    "Phones in calls",
		read:    gauge("selvage_call_legs", labeled("kind", "phone")),
	},
	{Section: media, Key: "call_recordings", Name: "Calls recorded", read: gauge("selvage_call_recordings")},

	{Section: queues, Key: "password_queue", Name: "Passwords", read: gauge("selvage_password_queue")},
	{Section: queues, Key: "webhook_queue", Name: "Webhooks", shared: true, read: gauge("selvage_webhook_queue")},
	{Section: queues, Key: "logout_queue", Name: "Logouts", shared: true, read: gauge("selvage_logout_queue")},
	{Section: queues, Key: "callback_queue", Name: "Callbacks", shared: true, read: gauge("selvage_callback_queue")},
	{Section: queues, Key: "mail_queue", Name: "Mails", shared: true, read: gauge("selvage_mail_queue")},

	{Section: errs, Key: "errors", Name: "5xx responses", Unit: Rate, Fault: true, read: responses(status("5"))},
	{Section: errs, Key: "refused", Name: "4xx responses", Unit: Rate, read: responses(status("4"))},
	{
		Section: errs,
		Key:     "database_waits",
		Name:    "Database waits",
		Unit:    Rate,
		read:    rate("selvage_database_waits_total"),
	},
	{
		Section: errs,
		Key:     "database_retries",
		Name:    "Database retries",
		Unit:    Rate,
		read:    rate("selvage_database_retries_total"),
	},
	{Section: errs, Key: "deliveries_failed", Name: "Failed deliveries", Unit: Rate, Fault: true, read: undelivered},
	{
		Section: errs,
		Key:     "session_fallback",
		Name:    "Nodes without Redis",
		Fault:   true,
		read:    gauge("selvage_session_fallback"),
	},
}

// served is the name of the counter of requests, which is part of the histogram of their durations.
const served = "selvage_http_request_duration_seconds_count"

var (
	oauthPaths     = []string{"/oauth/", "/.well-known/", "/login/oauth/"}
	fabricPaths    = []string{"/api/fabric", "/api/project", "/subscriber/"}
	recordingPaths = []string{"/api/laml/", "/2010-04-01/", "/ingest/", "/api/relay/rest/recordings"}
	dashboardPaths = []string{"/dashboard"}
)

// path returns the path in the route of a request, which is a pattern such as "GET /dashboard".
func path(labels model.Metric) string {
	route := string(labels["route"])
	if _, p, ok := strings.Cut(route, " "); ok {
		return p
	}
	return route
}

func below(prefixes ...string) filter {
	return func(labels model.Metric) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(path(labels), p) })
	}
}

// isPage reports whether a route belongs to none of the other groups. Examples are sign-in pages,
// documentation and files.
func isPage(labels model.Metric) bool {
	groups := slices.Concat(oauthPaths, fabricPaths, recordingPaths, dashboardPaths)
	return !below(groups...)(labels)
}

// isUpload reports whether a request has stored a recording.
func isUpload(labels model.Metric) bool {
	route := string(labels["route"])
	upload := strings.HasPrefix(path(labels), "/ingest/") ||
		strings.HasPrefix(route, "POST ") && strings.HasSuffix(route, "/Accounts/{AccountSid}/Recordings")
	return upload && labels["status"] == "201"
}

func status(class string) filter {
	return func(labels model.Metric) bool { return strings.HasPrefix(string(labels["status"]), class) }
}

func labeled(name model.LabelName, value model.LabelValue) filter {
	return func(labels model.Metric) bool { return labels[name] == value }
}

func gauge(name string, accept ...filter) func(span) (float64, bool) {
	return func(s span) (float64, bool) { return s.gauge(name, every(accept)) }
}

func rate(name string, accept ...filter) func(span) (float64, bool) {
	return func(s span) (float64, bool) { return s.rate(name, every(accept)) }
}

// responses returns the rate of requests. A node that has served no requests has no histogram of
// their durations, so its rate is 0.
func responses(accept ...filter) func(span) (float64, bool) {
	return func(s span) (float64, bool) {
		n, _ := s.rate(served, every(accept))
		return n, s.seconds > 0
	}
}

func every(accept []filter) filter {
	return func(labels model.Metric) bool {
		return !slices.ContainsFunc(accept, func(f filter) bool { return !f(labels) })
	}
}

// events returns the rate of events of the identity provider. A node on which no such event has happened
// has no counter for it, so its rate is 0.
func events(names ...string) func(span) (float64, bool) {
	return identity(func(event string) bool { return slices.Contains(names, event) })
}

func identity(accept func(event string) bool) func(span) (float64, bool) {
	return func(s span) (float64, bool) {
		n, _ := s.rate("selvage_identity_events_total", func(labels model.Metric) bool {
			return accept(string(labels["event"]))
		})
		return n, s.seconds > 0
	}
}

func isToken(event string) bool { return strings.HasPrefix(event, "token_") }

func uptime(s span) (float64, bool) {
	start, ok := s.gauge(started, nil)
	return max(0, float64(time.Now().UnixMilli())/1000-start), ok
}

func cpu(s span) (float64, bool) {
	n, ok := s.rate("process_cpu_seconds_total", nil)
	return 100 * n, ok
}

// latency returns a quantile of the durations of requests. It ignores requests that stay open.
func latency(q float64) func(span) (float64, bool) {
	return func(s span) (float64, bool) {
		return s.quantile(q, "selvage_http_request_duration_seconds", func(labels model.Metric) bool {
			return !strings.HasSuffix(path(labels), "/live") && path(labels) != "/{$}"
		})
	}
}

// undelivered returns the rate of failed attempts to deliver webhooks, logouts, callbacks and
// emails.
func undelivered(s span) (total float64, ok bool) {
	if s.seconds == 0 {
		return 0, false
	}
	for _, what := range []string{"webhook", "logout", "callback", "mail"} {
		n, _ := s.rate("selvage_"+what+"_attempts_total", func(labels model.Metric) bool {
			return labels["result"] == "failed" || labels["result"] == "dead"
		})
		total += n
	}
	return total, true
}
