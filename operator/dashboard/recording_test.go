package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
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
		"without a token":       b.upload(base, raw, "CallSid", "x"),
		"with an invalid token": b.upload(base, raw, "form", "x"),
		"by a viewer":           viewer.upload(base, raw, "form", viewer.token("/dashboard/account")),

		"with the token of another session": viewer.upload(base, raw, "form", token),
	} {
		if a.StatusCode != http.StatusForbidden {
			t.Errorf("an upload %s: %s, want 403", name, a.Status)
		}
	}

	for name, body := range map[string]string{
		"nameless": "--b\r\n\r\n\r\n", "named": "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n",
	} {
		before := "--b\r\nContent-Disposition: form-data; name=form\r\n\r\n" + token + "\r\n"
		if a := b.multipart(base, "multipart/form-data; boundary=b",
			strings.NewReader(before+strings.Repeat(body, 300)+"--b--\r\n")); a.StatusCode != http.StatusBadRequest {
			t.Errorf("300 %s parts: %s, want 400", name, a.Status)
		}
	}

	stranger := w.browser()
	if a := stranger.upload(base, raw); !strings.HasPrefix(a.Header.Get("Location"), "/dashboard/login") {
		t.Errorf("an upload without a login: %s %s, want a redirect to the login", a.Status, a.Header.Get("Location"))
	}
}

// TestUploadFaults shows that the form reports wrong files and times, and keeps what was typed.
func TestUploadFaults(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base, raw := "/dashboard/projects/"+w.one.ID+"/recordings", stereo(t)
	token := b.token(base + "/upload")

	first := []string{"form", token}
	if a := b.uploadFirst(base, first, "<script>alert(1)</script>", "CallSid", "kept-call", "Direction",
		"inbound"); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `value="kept-call"`) || !strings.Contains(a.body, `id="faults"`) ||
		strings.Contains(a.body, "<script>alert") {
		t.Errorf("a file that is not audio: %s %s, want 422 with the typed values", a.Status, a.body)
	} else if !strings.Contains(between(a.body, `id="f-file-fault"`, "</p>"), "is not a WAV, MP3 or Ogg file") {
		t.Errorf("the field of a file that is not audio does not say so: %s", a.body)
	}

	if a := b.post(base+"/upload", base, url.Values{}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "Choose a file") {
		t.Errorf("an upload without a file: %s, want 422 that asks for one", a.Status)
	}
	if a := b.uploadFirst(base, first, raw, "From", "a\x00b"); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a field after the file that is not text: %s, want 422", a.Status)
	}
	many := slices.Repeat([]string{"CallSid", "x"}, 300)
	if a := b.uploadFirst(base, first, raw, many...); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("300 fields after the file: %s, want 422", a.Status)
	}
	if a := b.uploadFirst(base, first, raw, "StartTime",
		"yesterday"); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `id="f-StartTime-fault"`) {
		t.Errorf("an invalid time: %s %s, want 422 with an error at the field", a.Status, a.body)
	}
	if a := b.uploadFirst(base, first, raw, "tags", "bad!"); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `id="f-tags-fault"`) {
		t.Errorf("an invalid tag: %s %s, want 422 with an error at the field", a.Status, a.body)
	}
	if list := b.get(base); strings.Contains(list.body, "<audio") {
		t.Error("a refused file was stored")
	}
	if a := b.upload(base, raw, "form", token, "StartTime",
		"1969-12-31T23:59"); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `value="1969-12-31T23:59"`) {
		t.Errorf("a time before 1970: %s %s, want 422 with the typed time", a.Status, a.body)
	}
}

// TestUploadTooLarge shows that the form reports a file that is larger than the server accepts,
// even if the server reads only a part of the file. The form keeps what was typed above the file.
func TestUploadTooLarge(t *testing.T) {
	w := newWorldOf(&world{TB: t, maxUpload: 100_000})
	_, b := w.operator("ann@example.com", ofAll)
	base, raw := "/dashboard/projects/"+w.one.ID+"/recordings", stereo(t)

	for size, file := range map[string]string{"slightly": raw[:120_000], "far": raw} {
		a := b.upload(base, file, "form", b.token(base+"/upload"), "CallSid", "kept-call")
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `value="kept-call"`) ||
			!strings.Contains(a.body, "larger than this server accepts") {
			t.Errorf("a file that is %s too large: %s %s, want 422 with the typed values", size, a.Status, a.body)
		}
	}
}

// TestUpload shows that the form uploads a recording, and that lists show it and find it by call,
// by party and more. Its page draws each leg and plays from a given position.
func TestUpload(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID + "/recordings"
	token := b.token(base + "/upload")

	// A valid upload is stored with its metadata.
	a := b.uploadFirst(base, []string{"form", token}, stereo(t), "CallSid", "a-call", "From", "/private/<b>ada",
		"To", "+15551234567", "Direction", "inbound", "StartTime", "2026-01-31T15:04",
		"tags", "Complaint, vip")
	one, ok := strings.CutSuffix(a.Header.Get("Location"), "?done=stored")
	if !ok {
		t.Fatalf("a valid upload: %s %s", a.Status, a.body)
	}

	r, err := w.recordings.Find(context.Background(), recordings.Owner{ProjectID: w.one.ID},
		one[strings.LastIndex(one, "/")+1:])
	if err != nil || r.CallSid != "a-call" || r.Direction != "inbound" || r.Channels != 2 ||
		!slices.Equal(r.Tags, []string{"complaint", "vip"}) ||
		!r.StartTime.Equal(time.Date(2026, 1, 31, 15, 4, 0, 0, time.UTC)) {
		t.Errorf("the recording is %+v, %v", r, err)
	}

	// The home page's list of activity names the recording's parties and links to the recording.
	activity := b.get("/dashboard/projects/" + w.one.ID).body
	if link := between(activity, `href="`+one+`"`, "</a>"); !strings.Contains(link, "15551234567") {
		t.Errorf("the home page links to the upload with %q", link)
	}

	// The list filters by direction, and shows the call and its time.
	for direction, want := range map[string]bool{"inbound": true, "outbound": false, "' OR 1=1": true} {
		if a := b.get(base + "?direction=" + url.QueryEscape(direction)); strings.Contains(a.body, one+`"`) != want {
			t.Errorf("the list of direction %s: %s", direction, a.Status)
		}
	}
	if a := b.get(base); !strings.Contains(a.body, `title="2026-01-31T15:04:00Z">31 Jan 2026, 15:04:00<`) ||
		!strings.Contains(a.body, `?call=a-call" title="a-call">a-call<`) || !strings.Contains(a.body, "stored ") {
		t.Errorf("the list does not show the call and its time: %s", a.body)
	}

	// A number is found in any notation.
	for _, number := range []string{"+1 (555) 123-4567", "+15551234567", "15551234567", "0015551234567",
		"01115551234567", "+1.555.123.4567", "tel:+1-555-123-4567", "sip:+15551234567@pbx.example.com",
		"(555) 123-4567", "0555 123 4567"} {
		if a := b.get(base + "?q=" + url.QueryEscape(number)); !strings.Contains(a.body, one+`"`) {
			t.Errorf("a search for %q does not find the recording", number)
		}
	}

	// If a recording has no start, its page does not show the time of the upload as the start.
	later := b.uploadFirst(base, []string{"form", b.token(base + "/upload")}, stereo(t), "CallSid", "later")
	for page, want := range map[string]string{one: "31 Jan 2026, 15:04:00 UTC",
		strings.TrimSuffix(later.Header.Get("Location"), "?done=stored"): "Unknown"} {
		if got := b.get(page).find(t, "<dt>Call started</dt><dd>([^<]*)<"); got != want {
			t.Errorf("the call of %s started %q, want %q", page, got, want)
		}
	}

	// The page draws both legs and stays small.
	page := b.get(one)
	if n := strings.Count(page.body, "<svg "); n != 2 ||
		!strings.Contains(page.body, `aria-label="waveform of Second leg"`) ||
		!strings.Contains(page.body, `preload="none" src="/api/laml`) {
		t.Errorf("the page has %d outlines, want two", n)
	}
	if len(page.body) > 120_000 {
		t.Errorf("the page has %d bytes, want a small page", len(page.body))
	}

	// A link can start at a position in the recording.
	for at, want := range map[string]string{"1.5": ".mp3#t=1.5\"", "0:02": ".mp3#t=2\"", "99": ".mp3\"",
		"javascript:1": ".mp3\"", "NaN": ".mp3\"", "-1": ".mp3\""} {
		if a := b.get(one + "?t=" + url.QueryEscape(at)); !strings.Contains(a.body, want) {
			t.Errorf("a link at %q does not contain %s", at, want)
		}
	}

	// Each outline ends at the right edge and does not go back before it.
	for _, path := range regexp.MustCompile(`<path d="([^"]+)"`).FindAllStringSubmatch(page.body, -1) {
		above, below, ok := strings.Cut(path[1], "H480V")
		if !ok || strings.Count(above, "L") != strings.Count(below, "L") {
			t.Errorf("an outline has %d points above and %d below, want equal numbers and the right edge between them",
				strings.Count(above, "L"),
				strings.Count(below, "L"))
		}
	}

	// The list can be searched by call, party and more.
	for query, want := range map[string]bool{"call=a-call": true, "call=other": false, "call=a-": true,
		"call=-call": false, "call=" + r.Sid[:8]: true, "call=" + strings.ToUpper(r.Sid): true,
		"call=" + r.Sid[:3]:       false,
		"party=%2B1+555-123-4567": true, "party=15551234567": true, "party=%2B1555": false,
		"party=4567": true, "q=%2B1555": true, "q=%2B1556": false,
		"q=CALL": true, "name=ad": true, "name=da": false, "q=ADA+call.w": true,
		"longer=1": true, "longer=3600": false, "shorter=1": false,
		"party=/private/%3Cb%3Eada": true, "call=a-&party=15551234567": true, "call=a-&party=1": false,
		"flag=silent": false, "subscriber=nobody": false, "call=a-call&subscriber=%00x": false} {
		if a := b.get(base + "?" + query); a.StatusCode != http.StatusOK || strings.Contains(a.body, one) != want {
			t.Errorf("the list for %s returned %s, and contains the recording: %v", query, a.Status, !want)
		}
	}
}
