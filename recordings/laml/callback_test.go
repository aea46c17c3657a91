package laml_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
)

// A callback is a request to a status callback.
type callback struct {
	method string
	url    string // the URL that the receiver sees
	fields url.Values
	header http.Header
	shown  int // the status of a request for the recording's document during the callback
}

// An app is a server that receives status callbacks.
type app struct {
	*httptest.Server
	mu       sync.Mutex
	status   int
	received []callback
}

const signingKey = "PSKcallbacks"

// newApp starts an app, and a deliverer that sends it status callbacks.
func (s *server) newApp(t *testing.T) *app {
	t.Helper()
	a := &app{status: 204}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fields := r.URL.Query()
		if r.Method == http.MethodPost {
			fields, err = url.ParseQuery(string(body))
			if err != nil {
				t.Error(err)
			}
		}
		document := s.path("/Recordings/" + fields.Get("RecordingSid") + ".json")
		c := callback{
			method: r.Method,
			url:    "http://" + r.Host + r.RequestURI,
			fields: fields,
			header: r.Header,
			shown:  s.do(t, "GET", document, s.basic).StatusCode,
		}

		a.mu.Lock()
		defer a.mu.Unlock()
		a.received = append(a.received, c)
		w.WriteHeader(a.status)
	}))
	t.Cleanup(a.Close)

	key := func(context.Context, string) (string, error) { return signingKey, nil }
	d := deliver.New(deliver.Config{
		Queue:  s.store.CallbackQueue(),
		Client: egress.Policy{Allow: []string{"127.0.0.1"}}.Client(),
		Agent:  "test",
		What:   "callback",
		Writer: laml.CallbackWriter("https://example.com", key),
		Log:    slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return a
}

// setStatus sets the status of all later responses.
func (a *app) setStatus(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status
}

// await waits until the app has received n requests, and returns them.
func (a *app) await(t *testing.T, n int) []callback {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		a.mu.Lock()
		received := slices.Clone(a.received)
		a.mu.Unlock()
		if len(received) == n {
			return received
		}
		if len(received) > n || time.Now().After(deadline) {
			t.Fatalf("%d callbacks, want %d: %+v", len(received), n, received)
		}
	}
}

// idle waits until no delivery is pending, and returns all deliveries, newest first.
func (s *server) idle(t *testing.T) []recordings.Delivery {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		found, err := s.rules.Callbacks().List(t.Context(), s.project, "", page.Query{Size: 100})
		if err != nil {
			t.Fatal(err)
		}
		pending := func(d recordings.Delivery) bool { return d.State == deliver.Pending }
		if !slices.ContainsFunc(found.Items, pending) {
			return found.Items
		}
		if time.Now().After(deadline) {
			t.Fatalf("deliveries are still pending: %+v", found.Items)
		}
	}
}

// check checks the fields and the signature of a callback.
func (c callback) check(t *testing.T, want url.Values) {
	t.Helper()
	for name := range want {
		if got := c.fields.Get(name); got != want.Get(name) {
			t.Errorf("callback %s: %s = %q, want %q", c.fields.Get("RecordingStatus"), name, got, want.Get(name))
		}
	}

	signed := deliver.FormSignature(signingKey, c.url, c.fields)
	if c.method == http.MethodGet {
		signed = deliver.FormSignature(signingKey, c.url, nil)
	}

	for name := range signed {
		if got := c.header.Get(name); got != signed.Get(name) {
			t.Errorf("callback to %s: %s = %q, want %q", c.url, name, got, signed.Get(name))
		}
	}

	if c.shown != http.StatusOK {
		t.Errorf("during the callback, GET of the recording = %d, want 200", c.shown)
	}
}

// TestCallbacks shows that a callback is called once when a recording begins and once when it is
// complete, either by POST or by GET.
func TestCallbacks(t *testing.T) {
	for _, method := range recordings.CallbackMethods {
		t.Run(method, func(t *testing.T) {
			s := newServer(t)
			a := s.newApp(t)
			sid := s.announce(t, "CallSid=c").Sid
			start := url.Values{
				"RecordingStatusCallback":       {a.URL + "/done?a=b%20c"},
				"RecordingStatusCallbackMethod": {method},
				"RecordingStatusCallbackEvent":  {"completed in-progress"},
				"RecordingChannels":             {"dual"},
			}
			for range 2 { // the second request changes nothing
				if got := s.post(t, "/Calls/c/Recordings", start.Encode()); got.StatusCode != 201 {
					t.Fatalf("Start = %d %s, want 201", got.StatusCode, got.body)
				}
			}

			begun := a.await(t, 1)[0]
			if uploaded := s.upload(t, "speech_stereo_8k.wav", "CallSid=c"); uploaded != sid {
				t.Fatalf("the upload went to %s, want %s", uploaded, sid)
			}

			for _, c := range a.await(t, 2) {
				if c.method != method {
					t.Errorf("method = %s, want %s", c.method, method)
				}
			}

			want := url.Values{
				"AccountSid":         {s.project},
				"CallSid":            {"c"},
				"ConferenceSid":      {""},
				"RecordingSid":       {sid},
				"RecordingChannels":  {"2"},
				"RecordingSource":    {"StartCallRecordingApi"},
				"RecordingTrack":     {"both"},
				"RecordingUrl":       {"https://example.com" + s.path("/Recordings/"+sid)},
				"RecordingStartTime": {"Sat, 21 Nov 2026 10:00:00 +0000"},
				"RecordingDuration":  {"0"},
				"RecordingStatus":    {"in-progress"},
				"ErrorCode":          {""},
			}
			begun.check(t, want)
			want.Set("RecordingStatus", "completed")
			want.Set("RecordingDuration", fmt.Sprint(s.show(t, sid).Duration))
			a.await(t, 2)[1].check(t, want)

			deliveries := s.idle(t)
			if len(deliveries) != 2 {
				t.Fatalf("%d deliveries, want 2: %+v", len(deliveries), deliveries)
			}
			if newest := deliveries[0]; newest.Event != "completed" || newest.Status != 204 {
				t.Errorf("the newest delivery is %s with the status %d, want completed with 204",
					newest.Event, newest.Status)
			}
		})
	}
}

// TestCallbackOfUpload shows that an upload can name a callback, which replaces the callback of the
// waiting recording. The callback is called only once, even if the upload is repeated.
func TestCallbackOfUpload(t *testing.T) {
	s := newServer(t)
	a := s.newApp(t)
	s.announce(t, "CallSid=c&RecordingStatusCallback="+url.QueryEscape("https://unused.example/"))
	query := url.Values{"CallSid": {"c"}, "RecordingStatusCallback": {a.URL}}
	for range 3 {
		got := s.sendWAV(t, query.Encode(), corpusFile(t, speech))
		if got.StatusCode != 200 && got.StatusCode != 201 {
			t.Fatalf("upload = %d %s, want 200 or 201", got.StatusCode, got.body)
		}
	}

	received := a.await(t, 1)[0]
	received.check(t, url.Values{"RecordingStatus": {"completed"}})
	if want := a.URL + "/"; received.url != want {
		t.Errorf("the callback went to %s, want %s", received.url, want)
	}
	deliveries := s.idle(t)
	if len(deliveries) != 1 {
		t.Fatalf("%d deliveries, want 1: %+v", len(deliveries), deliveries)
	}
	if got := deliveries[0].URL; got != a.URL {
		t.Errorf("the delivery has the URL %s, want %s", got, a.URL)
	}
}

// TestCallbackOfAbsent shows that callbacks for the event absent are called in two cases: if an
// upload is silent, and if the media never arrives.
func TestCallbackOfAbsent(t *testing.T) {
	s := newServer(t)
	a := s.newApp(t)
	about := url.Values{"RecordingStatusCallback": {a.URL}, "RecordingStatusCallbackEvent": {"absent"}}
	s.upload(t, "silence.wav", about.Encode())
	s.upload(t, "silence.wav", url.Values{"RecordingStatusCallback": {a.URL}}.Encode())
	s.announce(t, "CallSid=never&"+about.Encode())
	s.clock.set(s.clock.now().Add(recordings.DefaultWait + time.Minute))
	if err := s.rules.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range a.await(t, 2) {
		c.check(t, url.Values{"RecordingStatus": {"absent"}, "ErrorCode": {recordings.NoAudio}})
	}
}

// TestCallbackAfterLongStop shows that a callback for the event absent is sent even if the wait for the
// media ended days ago, while no server was running.
func TestCallbackAfterLongStop(t *testing.T) {
	s := newServer(t)
	a := s.newApp(t)
	a.setStatus(http.StatusServiceUnavailable)
	about := url.Values{"RecordingStatusCallback": {a.URL}, "RecordingStatusCallbackEvent": {"absent"}}
	s.announce(t, "CallSid=never&"+about.Encode())
	s.clock.set(s.clock.now().Add(recordings.DefaultWait + deliver.WaitAtMost + time.Hour))
	if err := s.rules.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	found, err := s.rules.Callbacks().List(t.Context(), s.project, "", page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != 1 {
		t.Fatalf("%d deliveries, want 1", len(found.Items))
	}
	if d := found.Items[0]; d.State != deliver.Pending {
		t.Errorf("the delivery is %s with the error %q, want %s", d.State, d.Error, deliver.Pending)
	}
}

// TestDeadCallback shows that a callback that the receiver refuses becomes a dead letter, which can
// be sent again.
func TestDeadCallback(t *testing.T) {
	s := newServer(t)
	a := s.newApp(t)
	a.setStatus(http.StatusGone)
	s.upload(t, "speech_s16_8k.wav", url.Values{"RecordingStatusCallback": {a.URL + "/x"}}.Encode())
	a.await(t, 1)
	dead := s.idle(t)
	if len(dead) != 1 {
		t.Fatalf("%d deliveries, want 1: %+v", len(dead), dead)
	}
	if dead[0].State != deliver.Dead || dead[0].Progress.Status != http.StatusGone {
		t.Fatalf("the delivery is %s with the status %d, want dead with 410", dead[0].State, dead[0].Progress.Status)
	}

	a.setStatus(http.StatusOK)
	n, err := s.rules.Callbacks().RedeliverDead(t.Context(), s.project)
	if err != nil || n != 1 {
		t.Errorf("RedeliverDead = %d, %v, want 1", n, err)
	}
	a.await(t, 2)
	s.idle(t)
	if _, err := s.rules.Callbacks().Redeliver(t.Context(), s.project, dead[0].ID); err != nil {
		t.Error(err)
	}
	received := a.await(t, 3)
	if first, last := received[0].fields.Encode(), received[2].fields.Encode(); first != last {
		t.Errorf("the callback that was sent again is %s, want %s", last, first)
	}
}

// TestUnsafeCallback shows that a callback is refused if selvage may not send requests to its URL.
func TestUnsafeCallback(t *testing.T) {
	s := newServer(t, func(_ *server, c *recordings.Config, _ *laml.Config) { c.CheckURL = egress.Policy{}.Check })
	s.announce(t, "CallSid=c")
	unsafe := []string{
		"http://127.0.0.1/",
		"http://localhost:8080/",
		"http://[::1]/",
		"http://user:pw@example.com/",
		"ftp://example.com/",
		"https://example.com:22/",
		"https://example.com/#x",
		"javascript:alert(1)",
		"/done",
	}
	for _, callbackURL := range unsafe {
		fields := url.Values{"RecordingStatusCallback": {callbackURL}}.Encode()
		uploaded := s.sendWAV(t, fields, corpusFile(t, speech))
		wantError(t, "upload with the callback "+callbackURL, uploaded, 400, 10000)
		started := s.post(t, "/Calls/c/Recordings", fields)
		wantError(t, "start with the callback "+callbackURL, started, 400, 10000)
	}

	stored := read[list](t, s.do(t, "GET", s.path("/Recordings"), s.basic))
	if n := len(stored.Recordings); n != 1 {
		t.Errorf("%d recordings, want only the announced one", n)
	}
}
