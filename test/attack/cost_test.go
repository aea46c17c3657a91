package attack

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"os"
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
	maxMore = 20 * time.Millisecond
)

// TestI17HostileRequests sends requests that are designed to be costly. Each costs less than 50 ms
// of CPU time and 5 MiB. A hostile password costs at most 20 ms more than an ordinary one, whose
// hash is intentionally expensive.
func TestI17HostileRequests(t *testing.T) {
	harness.OneBackend(t)
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("only Linux counts a process's time precisely")
	}
	s := harness.Start(t)
	p := s.NewProject(t)
	c := p.NewClient(t, "web")
	sat := p.NewSAT(t, "ada")
	sid := p.Upload(t, harness.Tone(80_000, 8))
	all := p.NewKey(t, append(harness.APIScopes, "Management")...)

	wide := func(s string, n int) string { return strings.Repeat(s, n) }
	jsonBody := func(text string) []harness.Option {
		return []harness.Option{harness.Basic(p.ID, all), harness.JSON(text)}
	}

	media := p.LaML("/Recordings/" + sid + ".wav")
	script := "/api/fabric/resources/swml_scripts"
	type request struct {
		method, path string
		opts         []harness.Option
	}
	requests := map[string]request{
		"a script of text": {"POST", script, jsonBody(`{"name":"a","contents":"` + wide("a", 520_000) + `"}`)},
		"a script of escapes": {"POST", script,
			jsonBody(`{"name":"a","contents":"` + wide(`\u00e9`, 85_000) + `"}`)},
		"an e-mail of brackets": {"POST", "/api/fabric/resources/subscribers",
			jsonBody(`{"email":"` + wide("(", 900_000) + `@x"}`)},
		"a reference of marks": {"POST", "/api/fabric/subscribers/tokens",
			jsonBody(`{"reference":"` + wide("a\u0301", 300_000) + `"}`)},
		"many addresses": {"POST", "/api/fabric/guests/tokens",
			jsonBody(`{"allowed_addresses":[` + wide(`"",`, 300_000) + `""]}`)},
		"an unauthenticated MiB": {"POST", "/api/fabric/subscribers/tokens",
			[]harness.Option{harness.JSON(`{"reference":"` + wide("a", 1_000_000) + `"}`)}},
		"a token of dots": {"GET", "/api/fabric/subscriber/info",
			[]harness.Option{harness.Bearer(wide(".", 30_000))}},
		"a token of letters": {"GET", "/api/fabric/subscriber/info",
			[]harness.Option{harness.Bearer(wide("A", 30_000))}},
		"an altered token": {"GET", "/api/fabric/subscriber/info", []harness.Option{harness.Bearer(sat.Token + "A")}},
		"a form of fields": {"POST", "/oauth/token", []harness.Option{c.Authenticated(nil)[1],
			harness.Body("application/x-www-form-urlencoded", []byte(wide("a=&", 10_000)))}},
		"a form of escapes": {"POST", "/oauth/token", []harness.Option{c.Authenticated(nil)[1],
			harness.Body("application/x-www-form-urlencoded", []byte("grant_type="+wide("%25", 10_000)))}},
		"introspected dots": {"POST", "/oauth/introspect", c.Authenticated(url.Values{"token": {wide(".", 30_000)}})},
		"scopes": {"GET", "/login/oauth/authorize?client_id=" + c.ID + "&redirect_uri=" + url.QueryEscape(c.Redirect) +
			"&response_type=code&scope=" + wide("openid+", 2_000), nil},
		"claims": {"GET", "/login/oauth/authorize?client_id=" + c.ID + "&redirect_uri=" + url.QueryEscape(c.Redirect) +
			"&response_type=code&scope=openid&claims=" + wide("[", 15_000), nil},
		"cookies": {"GET", "/account?project=" + p.ID,
			[]harness.Option{harness.Header("Cookie", wide("selvage=a; ", 2_700))}},
		"languages": {"GET", "/device",
			[]harness.Option{harness.Header("Accept-Language", wide("de-u-co-", 3_700))}},
		"forwarded": {"GET", "/device",
			[]harness.Option{harness.Header("X-Forwarded-For", wide("10.0.0.1,", 3_300))}},
		"ranges":         {"GET", media, []harness.Option{harness.Header("Range", "bytes="+wide("0-,", 9_000))}},
		"the same range": {"GET", media, []harness.Option{harness.Header("Range", "bytes=0-,0-,0-,0-")}},
		"a Sid":          {"GET", p.LaML("/Recordings/" + wide("..%2f", 5_000) + ".wav"), nil},
		"a date": {"GET", p.LaML("/Recordings.json?DateCreated=" + wide("(", 25_000)),
			[]harness.Option{p.Basic()}},
		"a WAV of chunks": {"POST", p.LaML("/Recordings"), []harness.Option{p.Basic(),
			harness.Body("audio/wav", []byte("RIFF\xff\xff\xff\xffWAVE"+wide("JUNK\x00\x00\x00\x00", 100_000)))}},
		"an MP3 of frames": {"POST", p.LaML("/Recordings"), []harness.Option{p.Basic(),
			harness.Body("audio/mpeg", []byte(wide("\xff\xfb\x90\x00", 200_000)))}},
		"an Ogg of pages": {"POST", p.LaML("/Recordings"), []harness.Option{p.Basic(),
			harness.Body("audio/ogg", []byte(wide("OggS\x00", 200_000)))}},
		"a form of parts": {"POST", p.LaML("/Recordings"), []harness.Option{p.Basic(),
			harness.Body("multipart/form-data; boundary=x", []byte(wide("--x\r\n\r\n\r\n", 80_000)+"--x--"))}},
		"a hash to import": {"POST", "/api/fabric/resources/subscribers",
			jsonBody(`{"email":"y@example.com","password_hash":"$2b$31$` + wide("A", 900_000) + `"}`)},
		"a page token": {"GET", "/api/fabric/resources?page_token=PA" + wide("0", 30_000), []harness.Option{p.Basic()}},
	}

	// Resource bodies may be half as large as other bodies.
	for name, body := range map[string]func(n int) string{
		"nested JSON":         func(n int) string { return `{"display_name":` + wide("[", n/2) },
		"many members":        func(n int) string { return "{" + wide(`"a":1,`, n/6) + `"b":1}` },
		"a name of ligatures": func(n int) string { return `{"display_name":"` + wide("\ufdfa", n/3) + `"}` },
		"a name of marks":     func(n int) string { return `{"display_name":"` + wide("a\u0301", n/3) + `"}` },
		"a name of scripts":   func(n int) string { return `{"display_name":"` + wide("\u0430a", n/3) + `"}` },
		"escaped surrogates":  func(n int) string { return `{"display_name":"` + wide(`\ud800`, n/6) + `"}` },
		"a long number":       func(n int) string { return `{"max_members":1` + wide("0", n) + "}" },
	} {
		requests[name] = request{"POST", "/api/fabric/resources/conference_rooms", jsonBody(body(520_000))}
		requests[name+", subscriber"] = request{"POST", "/api/fabric/resources/subscribers",
			jsonBody(body(1_000_000))}
	}

	var table bytes.Buffer
	w := bufio.NewWriter(&table)
	note := func(name string, cost process) {
		fmt.Fprintf(w, "\n%-32s %8.1f ms %8.1f MiB", name, cost.cpu.Seconds()*1000, float64(cost.heap)/(1<<20))
	}

	least := func(name string, r request, most time.Duration) process {
		cost := leastCost(t, s, most, func() error {
			_, err := s.Try(r.method, r.path, r.opts...)
			return err
		})
		note(name, cost)
		if cost.cpu == time.Hour {
			t.Errorf("%s: no answer", name)
		}
		return cost
	}

	check := func(name string, r request, most time.Duration) {
		if cost := least(name, r, most); cost.cpu >= most || cost.heap >= maxHeap {
			t.Errorf("%s costs %v of processor time and %d bytes, want less than %v and %d", name, cost.cpu,
				cost.heap, most, maxHeap)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(requests)) {
		check(name, requests[name], maxCPU)
	}

	subscriber := func(password string) request {
		return request{"POST", "/api/fabric/resources/subscribers",
			jsonBody(`{"email":"x@example.com","password":"` + password + `"}`)}
	}
	ordinary := least("an ordinary password", subscriber("fathom lantern quarry"), 0)
	check("a password of signs", subscriber("4@8({[<369&#!1/|0$5+7%24@8({[<36"), ordinary.cpu+maxMore)
	_ = w.Flush() // writes to a buffer
	t.Logf("the cost of each request, with that of measuring it:%s", table.String())
}

// leastCost returns the lowest cost of a request in up to five attempts, because other requests can
// only add to a measurement. It stops at the first attempt within the bounds.
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
