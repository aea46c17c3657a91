package attack

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A process holds the resources that a server has used.
type process struct {
	cpu  time.Duration // CPU time of all its threads and of its children
	heap uint64        // number of bytes allocated
}

func (p process) since(before process) process {
	return process{p.cpu - before.cpu, p.heap - before.heap}
}

// processOf returns the resources that a server has used.
func processOf(t *testing.T, s *harness.Server) (p process) {
	t.Helper()
	p.cpu = harness.CPU(s.PID())
	for line := range bytes.Lines(s.Get(t, s.Ops+"/metrics").Want(t, 200).Body) {
		if rest, ok := strings.CutPrefix(string(line), "go_memstats_alloc_bytes_total "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatal(err)
			}
			p.heap = uint64(f)
		}
	}
	return p
}

// These constants bound the cost of one hostile request.
const (
	maxCPU  = 50 * time.Millisecond
	maxHeap = 5 << 20
	maxMore = 20 * time.Millisecond // CPU time of a hostile password, beyond an ordinary one
)

// A costlyRequest is a request that is designed to be costly.
type costlyRequest struct {
	method, path string
	opts         []harness.Option
}

// TestI17HostileRequests sends requests that are designed to be costly. Each must cost less than 50
// ms of CPU time and 5 MiB of memory. Hashing any password is expensive, so a hostile password is
// compared with an ordinary one: it may cost less than 20 ms more.
func TestI17HostileRequests(t *testing.T) {
	harness.OneBackend(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux lets a test read another process's CPU clock")
	}
	p := harness.Start(t).NewProject(t)
	key := p.NewKey(t, append(harness.APIScopes, "Management")...)

	requests := costlyRequests(t, p, key)
	for name, body := range costlyBodies() {
		// The limit for the body of a resource is half the limit for other bodies.
		requests[name] = apiRequest(p, key, "resources/conference_rooms", body(520_000))
		requests[name+", subscriber"] = apiRequest(p, key, "resources/subscribers", body(1_000_000))
	}

	costs := costTable{t: t, server: p.Server}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		costs.check(name, requests[name], maxCPU)
	}

	subscriber := func(password string) costlyRequest {
		body := `{"email":"x@example.com","password":"` + password + `"}`
		return apiRequest(p, key, "resources/subscribers", body)
	}
	ordinary := costs.measure("an ordinary password", subscriber("fathom lantern quarry"), 0)
	hostile := subscriber("4@8({[<369&#!1/|0$5+7%24@8({[<36")
	costs.check("a password of signs", hostile, ordinary.cpu+maxMore)
	t.Logf("the cost of each request, including the measurement itself:%s", costs.lines.String())
}

// apiRequest returns a POST of JSON to the fabric API.
func apiRequest(p *harness.Project, key, path, body string) costlyRequest {
	return costlyRequest{
		method: "POST",
		path:   "/api/fabric/" + path,
		opts:   []harness.Option{harness.Basic(p.ID, key), harness.JSON(body)},
	}
}

// costlyRequests returns requests by name, other than those with the bodies of costlyBodies.
func costlyRequests(t *testing.T, p *harness.Project, key string) map[string]costlyRequest {
	t.Helper()
	repeat := strings.Repeat
	api := func(path, body string) costlyRequest { return apiRequest(p, key, path, body) }
	script := func(contents string) costlyRequest {
		return api("resources/swml_scripts", `{"name":"a","contents":"`+contents+`"}`)
	}
	get := func(path string, opts ...harness.Option) costlyRequest {
		return costlyRequest{method: "GET", path: path, opts: opts}
	}

	c := p.NewClient(t, "web")
	authorize := "/login/oauth/authorize?client_id=" + c.ID + "&redirect_uri=" + url.QueryEscape(c.Redirect) +
		"&response_type=code"
	dots := url.Values{"token": {repeat(".", 30_000)}}
	authenticated := c.Authenticated(nil)[1]
	form := func(text string) costlyRequest {
		body := harness.Body("application/x-www-form-urlencoded", []byte(text))
		return costlyRequest{
			method: "POST",
			path:   "/oauth/token",
			opts:   []harness.Option{authenticated, body},
		}
	}

	sat := p.NewSAT(t, "ada")
	info := "/api/fabric/subscriber/info"

	media := p.LaML("/Recordings/" + p.Upload(t, harness.Tone(80_000, 8)) + ".wav")
	upload := func(contentType, content string) costlyRequest {
		opts := []harness.Option{p.Basic(), harness.Body(contentType, []byte(content))}
		return costlyRequest{method: "POST", path: p.LaML("/Recordings"), opts: opts}
	}

	return map[string]costlyRequest{
		"a script of text":     script(repeat("a", 520_000)),
		"a script of escapes":  script(repeat(`\u00e9`, 85_000)),
		"an email of brackets": api("resources/subscribers", `{"email":"`+repeat("(", 900_000)+`@x"}`),
		"a reference of marks": api("subscribers/tokens", `{"reference":"`+repeat("a\u0301", 300_000)+`"}`),
		"many addresses":       api("guests/tokens", `{"allowed_addresses":[`+repeat(`"",`, 300_000)+`""]}`),
		"a hash to import": api("resources/subscribers",
			`{"email":"y@example.com","password_hash":"$2b$31$`+repeat("A", 900_000)+`"}`),
		"an unauthenticated MiB": {"POST", "/api/fabric/subscribers/tokens",
			[]harness.Option{harness.JSON(`{"reference":"` + repeat("a", 1_000_000) + `"}`)}},

		"a token of dots":    get(info, harness.Bearer(repeat(".", 30_000))),
		"a token of letters": get(info, harness.Bearer(repeat("A", 30_000))),
		"an altered token":   get(info, harness.Bearer(sat.Token+"A")),
		"a page token":       get("/api/fabric/resources?page_token=PA"+repeat("0", 30_000), p.Basic()),

		"a form of fields":  form(repeat("a=&", 10_000)),
		"a form of escapes": form("grant_type=" + repeat("%25", 10_000)),
		"introspected dots": {"POST", "/oauth/introspect", c.Authenticated(dots)},
		"scopes":            get(authorize + "&scope=" + repeat("openid+", 2_000)),
		"claims":            get(authorize + "&scope=openid&claims=" + repeat("[", 15_000)),

		"cookies":   get("/account?project="+p.ID, harness.Header("Cookie", repeat("selvage=a; ", 2_700))),
		"languages": get("/device", harness.Header("Accept-Language", repeat("de-u-co-", 3_700))),
		"forwarded": get("/device", harness.Header("X-Forwarded-For", repeat("10.0.0.1,", 3_300))),

		"ranges":         get(media, harness.Header("Range", "bytes="+repeat("0-,", 9_000))),
		"the same range": get(media, harness.Header("Range", "bytes=0-,0-,0-,0-")),
		"a Sid":          get(p.LaML("/Recordings/" + repeat("..%2f", 5_000) + ".wav")),
		"a date":         get(p.LaML("/Recordings.json?DateCreated="+repeat("(", 25_000)), p.Basic()),

		"a WAV of chunks":  upload("audio/wav", "RIFF\xff\xff\xff\xffWAVE"+repeat("JUNK\x00\x00\x00\x00", 100_000)),
		"an MP3 of frames": upload("audio/mpeg", repeat("\xff\xfb\x90\x00", 200_000)),
		"an Ogg of pages":  upload("audio/ogg", repeat("OggS\x00", 200_000)),
		"a form of parts":  upload("multipart/form-data; boundary=x", repeat("--x\r\n\r\n\r\n", 80_000)+"--x--"),
	}
}

// costlyBodies returns functions that return the body of a resource with about n bytes, by name.
func costlyBodies() map[string]func(n int) string {
	named := func(text string) func(n int) string {
		return func(n int) string {
			return `{"display_name":"` + strings.Repeat(text, n/len(text)) + `"}`
		}
	}
	return map[string]func(n int) string{
		"nested JSON":         func(n int) string { return `{"display_name":` + strings.Repeat("[", n/2) },
		"many members":        func(n int) string { return "{" + strings.Repeat(`"a":1,`, n/6) + `"b":1}` },
		"a long number":       func(n int) string { return `{"max_members":1` + strings.Repeat("0", n) + "}" },
		"a name of ligatures": named("\ufdfa"),
		"a name of marks":     named("a\u0301"),
		"a name of scripts":   named("\u0430a"),
		"escaped surrogates":  named(`\ud800`),
	}
}

// A costTable measures requests, and keeps a line with the cost of each.
type costTable struct {
	t      *testing.T
	server *harness.Server
	lines  strings.Builder
}

// measure returns the cost of a request. It measures up to five times, until the cost is within the
// bounds.
func (c *costTable) measure(name string, r costlyRequest, most time.Duration) process {
	c.t.Helper()
	cost := leastCost(c.t, c.server, most, func() error {
		_, err := c.server.Try(r.method, r.path, r.opts...)
		return err
	})

	milliseconds := cost.cpu.Seconds() * 1000
	mebibytes := float64(cost.heap) / (1 << 20)
	fmt.Fprintf(&c.lines, "\n%-32s %8.1f ms %8.1f MiB", name, milliseconds, mebibytes)
	if cost.cpu == time.Hour {
		c.t.Errorf("%s: the server did not answer", name)
	}
	return cost
}

// check fails the test if a request costs too much memory, or at least as much CPU time as most.
func (c *costTable) check(name string, r costlyRequest, most time.Duration) {
	c.t.Helper()
	if cost := c.measure(name, r, most); cost.cpu >= most || cost.heap >= maxHeap {
		c.t.Errorf("%s costs %v of processor time and %d bytes, want less than %v and %d", name, cost.cpu,
			cost.heap, most, maxHeap)
	}
}

// leastCost returns the lowest cost of a request in up to five attempts, because other work of the
// server can only add to a measurement. It stops as soon as the cost is within the bounds.
func leastCost(t *testing.T, s *harness.Server, most time.Duration, request func() error) process {
	t.Helper()
	least := process{time.Hour, 1 << 40}
	for range 5 {
		before := processOf(t, s)
		if err := request(); err != nil {
			continue // the server closed the connection before it read everything
		}
		cost := processOf(t, s).since(before)
		least = process{min(least.cpu, cost.cpu), min(least.heap, cost.heap)}
		if least.cpu < most && least.heap < maxHeap {
			break
		}
	}
	return least
}
