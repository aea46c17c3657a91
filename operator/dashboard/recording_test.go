package dashboard_test

import (
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// stereo returns a recording with two channels, one for each leg.
func stereo(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../recordings/testdata/speech_stereo_8k.wav")
	must(t, err)
	return string(raw)
}

// TestUploadRefused shows that uploads require a form token and permission, and that the number of
// parts is limited, including nameless and empty ones.
func TestUploadRefused(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	base, raw := "/dashboard/projects/"+w.one.ID+"/recordings", stereo(t)
	token := b.token(base + "/upload")

	for name, a := range map[string]answer{
		"without a token":                   b.upload(base, raw, "CallSid", "x"),
		"with an invalid token":             b.upload(base, raw, "form", "x"),
		"by a viewer":                       viewer.upload(base, raw, "form", viewer.token("/dashboard/account")),
		"with the token of another session": viewer.upload(base, raw, "form", token),
	} {
		if a.StatusCode != http.StatusForbidden {
			t.Errorf("an upload %s: %s, want 403", name, a.Status)
		}
	}

	first := "--b\r\nContent-Disposition: form-data; name=form\r\n\r\n" + token + "\r\n"
	for name, part := range map[string]string{
		"nameless": "--b\r\n\r\n\r\n",
		"named":    "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n",
	} {
		body := first + strings.Repeat(part, 300) + "--b--\r\n"
		a := b.multipart(base, "multipart/form-data; boundary=b", strings.NewReader(body))
		if a.StatusCode != http.StatusBadRequest {
			t.Errorf("300 %s parts: %s, want 400", name, a.Status)
		}
	}

	unknown := w.browser().upload(base, raw)
	if at := unknown.Header.Get("Location"); !strings.HasPrefix(at, "/dashboard/login") {
		t.Errorf("%s without a login leads to %q, want the login page", unknown, at)
	}
}

// TestUploadFaults shows that the form reports wrong files and times, and keeps what was typed.
func TestUploadFaults(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base, raw := "/dashboard/projects/"+w.one.ID+"/recordings", stereo(t)
	token := b.token(base + "/upload")

	first := []string{"form", token}
	noAudio := b.uploadFirst(base, first, "<script>alert(1)</script>", "CallSid", "kept-call", "Direction", "inbound")
	noAudio.wantRefused(t, `value="kept-call"`, `id="faults"`)
	noAudio.wantNoText(t, "<script>alert")
	fault := between(noAudio.body, `id="f-file-fault"`, "</p>")
	if want := "is not a WAV, MP3 or Ogg file"; !strings.Contains(fault, want) {
		t.Errorf("the field of a file that is not audio has the error %q, want %q", fault, want)
	}

	noFile := b.post(base+"/upload", base, url.Values{})
	noFile.wantRefused(t, "Choose a file")
	noText := b.uploadFirst(base, first, raw, "From", "a\x00b")
	noText.wantRefused(t)
	manyFields := b.uploadFirst(base, first, raw, slices.Repeat([]string{"CallSid", "x"}, 300)...)
	manyFields.wantRefused(t)
	noTime := b.uploadFirst(base, first, raw, "StartTime", "yesterday")
	noTime.wantRefused(t, `id="f-StartTime-fault"`)
	noTag := b.uploadFirst(base, first, raw, "tags", "bad!")
	noTag.wantRefused(t, `id="f-tags-fault"`)
	b.get(base).wantNoText(t, "<audio") // none of the files was stored

	before1970 := b.upload(base, raw, "form", token, "StartTime", "1969-12-31T23:59")
	before1970.wantRefused(t, `value="1969-12-31T23:59"`)
}

// TestUploadTooLarge shows that the form reports a file that is larger than the server accepts,
// even if the server reads only a part of the file. The form keeps what was typed above the file.
func TestUploadTooLarge(t *testing.T) {
	w := newWorldOf(&world{TB: t, maxUpload: 100_000})
	_, b := w.operator("ann@example.com", ofAll)
	base, raw := "/dashboard/projects/"+w.one.ID+"/recordings", stereo(t)

	for _, file := range []string{raw[:120_000], raw} { // slightly and far too large
		a := b.upload(base, file, "form", b.token(base+"/upload"), "CallSid", "kept-call")
		a.wantRefused(t, `value="kept-call"`, "larger than this server accepts")
	}
}

// storeCall uploads a recording of a call through the form, and returns the path of its page and
// the recording.
func (b browser) storeCall(t *testing.T) (one string, r recordings.Recording) {
	t.Helper()
	base := "/dashboard/projects/" + b.one.ID + "/recordings"
	stored := b.uploadFirst(base, []string{"form", b.token(base + "/upload")}, stereo(t),
		"CallSid", "a-call", "From", "/private/<b>ada", "To", "+15551234567", "Direction", "inbound",
		"StartTime", "2026-01-31T15:04", "tags", "Complaint, vip")
	one, ok := strings.CutSuffix(stored.Header.Get("Location"), "?done=stored")
	if !ok {
		t.Fatalf("%s, want a redirect to the recording\n%s", stored, stored.body)
	}
	r, err := b.recordings.Find(t.Context(), recordings.Owner{ProjectID: b.one.ID}, path.Base(one))
	must(t, err)
	return one, r
}

// TestUpload shows that the form stores a recording with its metadata, and that lists show it.
func TestUpload(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one, r := b.storeCall(t)
	for _, tt := range []struct{ name, got, want string }{
		{"call", r.CallSid, "a-call"},
		{"direction", r.Direction, "inbound"},
		{"tags", strings.Join(r.Tags, " "), "complaint vip"},
		{"start", r.StartTime.UTC().Format(time.RFC3339), "2026-01-31T15:04:00Z"},
	} {
		if tt.got != tt.want {
			t.Errorf("the %s of the recording is %q, want %q", tt.name, tt.got, tt.want)
		}
	}
	if r.Channels != 2 {
		t.Errorf("the recording has %d channels, want 2", r.Channels)
	}

	// The home page's list of activity names the recording's parties and links to the recording.
	home := "/dashboard/projects/" + w.one.ID
	activity := between(b.get(home).body, `href="`+one+`"`, "</a>")
	if !strings.Contains(activity, "15551234567") {
		t.Errorf("the home page links to the upload with %q, want it to contain the number", activity)
	}
	b.get(home+"/recordings").wantText(t,
		`title="2026-01-31T15:04:00Z">31 Jan 2026, 15:04:00<`,
		`?call=a-call" title="a-call">a-call<`,
		"stored ")
}

// TestRecordingPage shows that the page of a recording draws each leg, plays from a given position,
// and says when the call started, if that is known.
func TestRecordingPage(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one, _ := b.storeCall(t)

	// If a recording has no start, its page does not show the time of the upload as the start.
	base := "/dashboard/projects/" + w.one.ID + "/recordings"
	withoutStart := b.uploadFirst(base, []string{"form", b.token(base + "/upload")}, stereo(t), "CallSid", "later")
	later := strings.TrimSuffix(withoutStart.Header.Get("Location"), "?done=stored")
	for at, want := range map[string]string{one: "31 Jan 2026, 15:04:00 UTC", later: "Unknown"} {
		if got := b.get(at).find(t, "<dt>Call started</dt><dd>([^<]*)<"); got != want {
			t.Errorf("the page %s says that the call started %q, want %q", at, got, want)
		}
	}

	// The page draws both legs and stays small.
	page := b.get(one)
	page.wantText(t, `aria-label="waveform of Second leg"`, `preload="none" src="/api/laml`)
	if n := strings.Count(page.body, "<svg "); n != 2 {
		t.Errorf("the page has %d outlines, want 2", n)
	}
	if len(page.body) > 120_000 {
		t.Errorf("the page has %d bytes, want at most 120000", len(page.body))
	}

	// A link can start at a position in the recording.
	for position, want := range map[string]string{
		"1.5":          ".mp3#t=1.5\"",
		"0:02":         ".mp3#t=2\"",
		"99":           ".mp3\"",
		"javascript:1": ".mp3\"",
		"NaN":          ".mp3\"",
		"-1":           ".mp3\"",
	} {
		b.get(one+"?t="+url.QueryEscape(position)).wantText(t, want)
	}

	// Each outline reaches the right edge before it goes back.
	for _, outline := range regexp.MustCompile(`<path d="([^"]+)"`).FindAllStringSubmatch(page.body, -1) {
		above, below, ok := strings.Cut(outline[1], "H480V")
		if !ok {
			t.Errorf("the outline %s does not reach the right edge", outline[1])
		}
		up, down := strings.Count(above, "L"), strings.Count(below, "L")
		if up != down {
			t.Errorf("an outline has %d points above and %d below, want equal numbers", up, down)
		}
	}
}

// TestFindRecordings shows that recordings are found by direction, call, party and other properties.
func TestFindRecordings(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one, r := b.storeCall(t)
	base := "/dashboard/projects/" + w.one.ID + "/recordings"

	// A number is found in any notation.
	for _, number := range []string{"+1 (555) 123-4567", "+15551234567", "15551234567", "0015551234567",
		"01115551234567", "+1.555.123.4567", "tel:+1-555-123-4567", "sip:+15551234567@pbx.example.com",
		"(555) 123-4567", "0555 123 4567"} {
		b.get(base+"?q="+url.QueryEscape(number)).wantText(t, one+`"`)
	}

	for _, query := range []string{
		"direction=inbound", "direction=" + url.QueryEscape("' OR 1=1"), // an unknown direction is ignored
		"call=a-call", "call=a-", "call=" + r.Sid[:8], "call=" + strings.ToUpper(r.Sid),
		"party=%2B1+555-123-4567", "party=15551234567", "party=4567", "party=/private/%3Cb%3Eada",
		"q=%2B1555", "q=CALL", "q=ADA+call.w", "name=ad", "longer=1", "call=a-&party=15551234567",
	} {
		found := b.get(base + "?" + query)
		found.wantStatus(t, http.StatusOK)
		found.wantText(t, one+`"`)
	}
	for _, query := range []string{
		"direction=outbound", "call=other", "call=-call", "call=" + r.Sid[:3], "party=%2B1555", "q=%2B1556",
		"name=da", "longer=3600", "shorter=1", "call=a-&party=1", "flag=silent", "subscriber=nobody",
		"call=a-call&subscriber=%00x",
	} {
		empty := b.get(base + "?" + query)
		empty.wantStatus(t, http.StatusOK)
		empty.wantNoText(t, one)
	}
}
