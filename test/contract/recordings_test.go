package contract

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/selvage/selvage/test/harness"
)

// notHere lists statuses that only other tests provoke. 406 needs audio that cannot be converted;
// see the tests of recordings/laml. TestMediaInAnObjectStore provokes 307.
var notHere = []string{"307", "406"}

// login signs in a new subscriber with a scope. It returns the ID and the access token.
func (w *world) login(t *testing.T, scope string) (string, harness.Option) {
	t.Helper()
	sub := w.NewSubscriber(t)
	flags := []string{"--first-party"}
	for s := range strings.FieldsSeq(scope) {
		flags = append(flags, "--scope", s)
	}
	tokens, _ := w.NewClient(t, "spa", flags...).SignIn(t, sub, scope)
	return sub.ID, harness.Bearer(tokens.AccessToken)
}

// recording creates what an operation needs, usually a recording of a subscriber. It returns the
// operation's path with the IDs filled in.
func (w *world) recording(t *testing.T, op operation, subscriber string) string {
	t.Helper()
	if op.ingests() {
		key, _ := w.CLI(t, "", "ingest-key", "create", "--name", "switch", "--project", w.ID)["key"].(string)
		return strings.NewReplacer("{key}", key, "{file}", unique("call-")+".wav").Replace(op.path)
	}

	if strings.Contains(op.path, "/retention") {
		return w.retention(t, op)
	}

	q := url.Values{"SubscriberId": {subscriber}}
	call := unique("call-")
	if strings.Contains(op.path, "{ConferenceSid}") {
		q.Set("ConferenceSid", call)
	} else {
		q.Set("CallSid", call)
	}

	wav := harness.Tone(8000, 20+int(serial.Add(1)))
	opts := []harness.Option{w.who["basic"], harness.Body("audio/wav", wav)}
	switch {
	case strings.Contains(op.path, "{callback}"):
		q.Set("RecordingStatusCallback", "http://hooks.invalid/recorded")
	// These operations need a recording in progress.
	case op.method == "POST" && strings.Contains(op.path, "{"):
		q.Set("Status", "in-progress")
		opts = opts[:1]
	}

	a := w.Post(t, w.LaML("/Recordings")+"?"+q.Encode(), opts...).Want(t, 201)
	sid, _ := a.Object(t)["sid"].(string)
	fill := []string{"{AccountSid}", w.ID, "{Sid}", sid, "{id}", sid, "{CallSid}", call, "{ConferenceSid}", call}
	if strings.Contains(op.path, "{callback}") {
		fill = append(fill, "{callback}", w.callback(t, sid))
	}
	return strings.NewReplacer(fill...).Replace(op.path)
}

// retention deletes the project's retention rules, and returns the path of an operation on them. If
// this path contains the ID of a rule, retention first creates one rule.
func (w *world) retention(t *testing.T, op operation) string {
	t.Helper()
	const rules = "/api/relay/rest/recordings/retention"
	var all struct{ Data []struct{ ID string } }
	w.Get(t, rules, w.who["basic"]).Want(t, 200).Read(t, &all)
	for _, rule := range all.Data {
		w.Do(t, "DELETE", rules+"/"+rule.ID, w.who["basic"]).Want(t, 204)
	}
	if !strings.Contains(op.path, "{rule}") {
		return op.path
	}
	made := w.Post(t, rules, w.who["basic"], harness.JSON(map[string]any{"days": 36525})).Want(t, 201).Object(t)
	id, _ := made["id"].(string)
	return strings.Replace(op.path, "{rule}", id, 1)
}

// callback returns the ID of a recording's status callback.
func (w *world) callback(t *testing.T, sid string) string {
	t.Helper()
	var page struct {
		Data []struct {
			ID          string
			RecordingID string `json:"recording_id"`
		}
	}
	w.Get(t, "/api/relay/rest/recordings/callbacks", w.who["basic"]).Want(t, 200).Read(t, &page)
	for _, c := range page.Data {
		if c.RecordingID == sid {
			return c.ID
		}
	}
	t.Fatalf("recording %s has no status callback", sid)
	return ""
}

// ingests reports whether an operation accepts recordings from a telephone switch. The credential
// of a switch is the ingest key in the path.
func (op operation) ingests() bool { return strings.Contains(op.path, "{key}") }

// open reports whether an operation needs no credentials.
func (op operation) open() bool {
	return slices.ContainsFunc(*op.Security, func(r openapi3.SecurityRequirement) bool { return len(r) == 0 })
}

// uploads reports whether the body of an operation is a file.
func (op operation) uploads() bool {
	return op.RequestBody != nil && op.RequestBody.Value.Content["audio/*"] != nil
}

// TestRecordings shows that every operation on recordings returns all its documented statuses. It
// does for recordings what TestOperations does for other objects.
func TestRecordings(t *testing.T) {
	w := newWorld(t)
	subscriber, login := w.login(t, "openid Voice")
	w.who["login"] = login
	for _, op := range w.operations("Recordings") {
		t.Run(op.OperationID, func(t *testing.T) {
			r := &recordingTest{world: w, op: op, subscriber: subscriber, seen: make(map[string]bool)}
			r.succeeds(t)
			r.refuses(t)
			r.hides(t)
			if op.Responses.Status(409) != nil && !op.uploads() {
				r.conflicts(t)
			}
			if op.Responses.Status(304) != nil {
				r.ranges(t)
			}

			for status := range op.Responses.Map() {
				if !r.seen[status] && !slices.Contains(unprovoked, status) &&
					!slices.Contains(notHere, status) && !(status == "413" && op.uploads()) {
					t.Errorf("the status %s is documented, but no request provoked it", status)
				}
			}
		})
	}
}

// A recordingTest tests one operation.
type recordingTest struct {
	*world
	op         operation
	subscriber string
	seen       map[string]bool
}

func (r *recordingTest) path(t *testing.T) string {
	t.Helper()
	return r.recording(t, r.op, r.subscriber)
}

// do calls the operation at a path, with its example body or with a new WAV file.
func (r *recordingTest) do(t *testing.T, who harness.Option, path string, more ...harness.Option) harness.Answer {
	t.Helper()
	opts := []harness.Option{who}
	if r.op.uploads() {
		opts = append(opts, harness.Body("audio/wav", harness.Tone(8000, 20+int(serial.Add(1)))))
	} else if body := r.body(t, r.op); body != nil {
		opts = append(opts, harness.Body("application/json", body))
	}

	a := r.Do(t, r.op.method, path, append(opts, more...)...)
	r.seen[strconv.Itoa(a.Status)] = true
	return a
}

// succeeds calls the operation with each permitted credential. Uploads with an idempotency key are
// also repeated.
func (r *recordingTest) succeeds(t *testing.T) {
	t.Helper()
	for _, name := range r.op.schemes() {
		if a := r.do(t, r.who[name], r.path(t)); a.Status < 200 || a.Status > 299 {
			t.Errorf("with the credentials %s: %d %s, want 200 to 299", name, a.Status, a.Body)
		}
	}

	if r.op.uploads() {
		same := []harness.Option{harness.Header("Idempotency-Key", unique("key")),
			harness.Body("audio/wav", harness.Tone(8000, 17))}
		r.do(t, r.who["basic"], r.path(t), same...).Want(t, 201)
		r.do(t, r.who["basic"], r.path(t), same...).Want(t, 200)
		r.do(t, r.who["basic"], r.path(t), same[0], harness.Body("audio/wav", harness.Tone(8000, 18))).Want(t, 409)
	}
}

// refuses calls the operation without credentials, without permission and with malformed requests.
func (r *recordingTest) refuses(t *testing.T) {
	t.Helper()
	path, basic := r.path(t), r.who["basic"]

	if r.op.ingests() {
		r.do(t, nobody(), path+"?Direction=up").Want(t, 400)
		r.do(t, nobody(), path, harness.Body("audio/wav", []byte("no audio"))).Want(t, 415)
		r.do(t, nobody(), "/ingest/ik_unknown/a.wav").Want(t, 404)
		r.quota(t, "1", path, 403)
		r.quota(t, "0", path, 201)
		return
	}
	if r.op.open() {
		r.mediaAuth(t, "signed", path, 401)
		r.do(t, nobody(), path+"?exp=4102444800&sig=made-up").Want(t, 403)
		r.mediaAuth(t, "public", path, 200)
		r.do(t, nobody(), path+"?Channel=7&pixels=0").Want(t, 400)
		return
	}

	for name, who := range map[string]harness.Option{
		"nobody":                  nobody(),
		"a key without any scope": r.weak,
		"a SAT without the scope": r.who["sat"],
		"a guest":                 r.who["guest"],
	} {
		if a := r.do(t, who, path); a.Status != 401 {
			t.Errorf("with the credentials %s: %d %s, want 401", name, a.Status, a.Body)
		}
	}

	if r.op.Responses.Status(403) != nil {
		r.do(t, r.who["login"], path).Want(t, 403)
	}
	if r.op.Parameters.GetByInAndName("query", "page_size") != nil {
		r.do(t, basic, path+"?page_size=0").Want(t, 422)
	}

	switch {
	case r.op.uploads():
		r.do(t, basic, path+"?StartTime=never").Want(t, 400)
		r.do(t, basic, path, harness.Body("application/json", []byte(`{}`))).Want(t, 415)
	case r.op.RequestBody == nil && r.op.Responses.Status(422) != nil:
		r.do(t, basic, path+"?page_size=0&from=never&days=never").Want(t, 422)
	case r.op.RequestBody != nil:
		wrong := 400
		if r.op.Responses.Status(422) != nil {
			wrong = 422
			r.do(t, basic, path, harness.Body("application/json", []byte(`{`))).Want(t, 400)
		}
		r.do(t, basic, path, harness.Body("application/json", []byte(`{"Status":"danced","RecordingTrack":"third",
			"tags":["A B"],"action":"dance","days":-1}`))).Want(t, wrong)
		r.do(t, basic, path, harness.Body("text/plain", []byte(`x`))).Want(t, 415)
		r.do(t, basic, path, harness.Body(
			"application/json", []byte(`{"Status":"`+strings.Repeat("x", 2<<20)+`"}`))).Want(t, 413)
	case r.op.Responses.Status(400) != nil:
		r.do(t, basic, path+"?MediaUrlTtl=0&PageSize=0").Want(t, 400)
	}
}

// conflicts calls the operation where it must return 409: for a recording on hold, for a second
// rule for the same recordings, and with a wrong number of recordings.
func (r *recordingTest) conflicts(t *testing.T) {
	t.Helper()
	path, basic := r.path(t), r.who["basic"]
	switch {
	case r.op.method == "DELETE":
		at := strings.LastIndex(strings.ToLower(path), "/recordings/") + len("/recordings/")
		r.Do(t, "PATCH", "/api/relay/rest/recordings/"+path[at:at+36], basic,
			harness.JSON(map[string]any{"hold": "a case"})).Want(t, 200)
	case strings.HasSuffix(path, "/retention"):
		r.do(t, basic, path).Want(t, 201)
	default:
		r.do(t, basic, path, harness.JSON(map[string]any{
			"action": "mark",
			"filter": map[string]any{},
			"expect": 1_000_000,
		})).Want(t, 409)
		return
	}
	r.do(t, basic, path).Want(t, 409)
}

// quota changes the quota of the project's recordings and waits until uploads have the given status.
func (r *recordingTest) quota(t *testing.T, bytes, path string, status int) {
	t.Helper()
	r.CLI(t, "", "project", "update", r.ID, "--recording-quota", bytes)
	harness.Eventually(t, time.Minute, "uploads with a quota of "+bytes, func() error {
		return r.do(t, nobody(), path).StatusIs(status)
	})
}

// mediaAuth changes who may fetch media and waits until the change takes effect.
func (r *recordingTest) mediaAuth(t *testing.T, who, path string, status int) {
	t.Helper()
	r.CLI(t, "", "project", "update", r.ID, "--media-auth", who)
	harness.Eventually(t, time.Minute, "media to be "+who, func() error {
		return r.do(t, nobody(), path).StatusIs(status)
	})
}

// hides calls the operation for another project's objects and for unknown objects.
func (r *recordingTest) hides(t *testing.T) {
	t.Helper()
	if !strings.Contains(r.op.path, "{") {
		return // the path names no object
	}

	const unknown = "c6b5a4d3-e2f1-4a0b-9c8d-7e6f5a4b3c19"
	path := r.path(t)
	if !r.op.open() {
		r.do(t, r.foreign["basic"], path).Want(t, 404)
	}

	if strings.Contains(r.op.path, "{AccountSid}") {
		r.do(t, r.who["basic"], strings.Replace(path, r.ID, unknown, 1)).Want(t, 404)
	}

	if at := strings.LastIndex(strings.ToLower(path), "/recordings/"); at >= 0 {
		sid := path[at+len("/recordings/"):]
		sid = sid[:min(len(sid), 36)]
		r.do(t, r.who["basic"], strings.Replace(path, sid, unknown, 1)).Want(t, 404)
	}
}

// ranges requests parts of a file and makes conditional requests.
func (r *recordingTest) ranges(t *testing.T) {
	t.Helper()
	path := r.path(t)
	whole := r.do(t, nobody(), path).Want(t, 200)

	etag := harness.Header("If-None-Match", whole.Header.Get("ETag"))
	r.do(t, nobody(), path, etag).Want(t, http.StatusNotModified)
	r.do(t, nobody(), path, harness.Header("If-Match", `"another"`)).Want(t, http.StatusPreconditionFailed)

	if r.op.Responses.Status(206) != nil {
		r.do(t, nobody(), path, harness.Header("Range", "bytes=0-9")).Want(t, http.StatusPartialContent)
		r.do(t, nobody(), path, harness.Header("Range", "bytes=99999999-")).Want(
			t, http.StatusRequestedRangeNotSatisfiable)
	}
}
