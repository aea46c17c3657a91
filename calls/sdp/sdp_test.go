package sdp_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/internal/problem"
)

// offers returns the offers of browsers in testdata. The keys are the file names without .sdp. The
// offers from Chromium 156 and Firefox 153 were captured as the SDK sends them. The offer from
// Safari was written in the form that Safari uses.
func offers(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.sdp")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("testdata has no offers")
	}
	texts := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(f), ".sdp")] = string(b)
	}
	return texts
}

// summary formats each section as one line.
func summary(sections []sdp.Section) string {
	var lines []string
	for _, s := range sections {
		line := s.Mid + " " + s.Kind
		if s.Rejected {
			lines = append(lines, line+" rejected")
			continue
		}
		for _, c := range s.Codecs {
			line += fmt.Sprintf(" %s=%d", c.Name, c.Type)
		}
		lines = append(lines, line+" "+string(s.Direction))
	}
	return strings.Join(lines, "; ")
}

func TestBrowsers(t *testing.T) {
	want := map[string]string{
		"chromium-audio":       "0 audio opus=111 G722=9 telephone-event=110 sendrecv",
		"chromium-audio-video": "0 audio opus=111 G722=9 telephone-event=110 sendrecv; 1 video VP8=96 sendrecv",
		"chromium-screen":      "1 audio opus=111 G722=9 telephone-event=110 recvonly; 0 video VP8=96 recvonly",
		"chromium-data":        "0 audio opus=111 G722=9 telephone-event=110 recvonly; 1 application rejected",
		"firefox-audio":        "0 audio opus=109 G722=9 telephone-event=101 sendrecv",
		"firefox-audio-video":  "0 audio opus=109 G722=9 telephone-event=101 sendrecv; 1 video VP8=120 sendrecv",
		"firefox-screen":       "1 audio opus=109 G722=9 telephone-event=101 recvonly; 0 video VP8=120 recvonly",
		"safari-audio-video":   "0 audio opus=111 G722=9 telephone-event=110 sendrecv; 1 video VP8=100 sendrecv",
	}

	for name, text := range offers(t) {
		t.Run(name, func(t *testing.T) {
			offer, err := sdp.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			answer := sdp.Description{}
			for _, s := range offer.Sections {
				if s.Kind == sdp.Audio {
					checkTransport(t, s)
				}
				answer.Sections = append(answer.Sections, s.Answer())
			}

			answer.Sort()
			if got := summary(answer.Sections); got != want[name] {
				t.Errorf("the answer is\n%s\nwant\n%s", got, want[name])
			}
			for _, unwanted := range []string{"a=group", "rtx"} {
				if written := answer.String(); strings.Contains(written, unwanted) {
					t.Errorf("the answer contains %q:\n%s", unwanted, written)
				}
			}
		})
	}
}

// checkTransport checks that a browser's audio section has everything that a connection requires.
func checkTransport(t *testing.T, s sdp.Section) {
	t.Helper()
	if len(s.Ufrag) < 4 {
		t.Errorf("the ICE username is %q, want at least 4 characters", s.Ufrag)
	}
	if len(s.Fingerprint.Value) != 95 {
		t.Errorf("the fingerprint is %q, want the 95 characters of SHA-256", s.Fingerprint.Value)
	}
	if s.Setup != "actpass" {
		t.Errorf("the setup is %q, want actpass", s.Setup)
	}
	if s.SSRC == 0 {
		t.Error("the section has no SSRC")
	}
	if s.Stream == "" {
		t.Error("the section names no stream")
	}
}

func TestParseRefuses(t *testing.T) {
	section := "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n"
	tests := []struct{ name, text, message string }{
		{"nothing", "", "does not begin with v=0"},
		{"too much", "v=0\r\n" + strings.Repeat("a=x\r\n", sdp.MaxSize/5+1), "longer than"},
		{"no section", "v=0\r\n", "no section"},
		{"five sections", "v=0\r\n" + strings.Repeat(section, 5), "more than 4 sections"},
		{"the same mid", "v=0\r\n" + section + section, "the same a=mid"},
		{"no mid", "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\n", "no a=mid"},
		{"an odd mid", "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:a b\r\n", "a=mid is malformed"},
		{"65 codecs", "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF" + strings.Repeat(" 0", 65) + "\r\n", "more than 64 codecs"},
		{"65 candidates", "v=0\r\n" + section + strings.Repeat("a=candidate:x\r\n", 65), "more than 64 candidates"},
		{"many attributes", "v=0\r\n" + strings.Repeat("a=x\r\n", 1025), "more than 1024 attributes"},
		{"a control character", "v=0\r\n" + section + "a=fmtp:0 a\rb\r\n", "malformed line"},

		{"a line without =", "v=0\r\nhello\r\n", "malformed line"},
		{"a short password", "v=0\r\n" + section + "a=ice-pwd:short\r\n", "a=ice-pwd"},
		{"a broken fingerprint", "v=0\r\n" + section + "a=fingerprint:sha-256 XY\r\n", "a=fingerprint"},
		{"no clock rate", "v=0\r\n" + section + "a=rtpmap:0 opus\r\n", "a=rtpmap"},
		{"a big port", "v=0\r\nm=audio 70000 UDP/TLS/RTP/SAVPF 0\r\n", "port"},
		{"a big payload type", "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 128\r\na=mid:0\r\n", "payload type"},
	}
	for _, tt := range tests {
		_, err := sdp.Parse(tt.text)
		if !errors.Is(err, problem.Invalid) || !strings.Contains(err.Error(), tt.message) {
			t.Errorf("Parse of %s = %v, want an error with %q", tt.name, err, tt.message)
		}
	}
}

func TestAnswer(t *testing.T) {
	audio := "m=audio 9 UDP/TLS/RTP/SAVPF 8 0 9 101\r\na=mid:0\r\na=rtpmap:101 telephone-event/8000\r\n"
	h264 := "m=video 9 UDP/TLS/RTP/SAVPF 100 102\r\na=mid:0\r\n" +
		"a=rtpmap:100 H264/90000\r\na=rtpmap:102 H264/90000\r\n" +
		"a=fmtp:100 packetization-mode=0;profile-level-id=42e01f\r\n" +
		"a=fmtp:102 packetization-mode=1;profile-level-id=%s\r\n"
	tests := []struct {
		name      string
		offer     string
		preferred []string // codecs
		want      string
	}{
		{"the best codec", audio, nil, "0 audio G722=9 telephone-event=101 sendrecv"},
		{"the codec in use", audio, []string{"PCMA"}, "0 audio PCMA=8 telephone-event=101 sendrecv"},
		{"an unknown codec in use", audio, []string{"VP8"}, "0 audio G722=9 telephone-event=101 sendrecv"},
		{"H.264", fmt.Sprintf(h264, "42e01f"), nil, "0 video H264=102 sendrecv"},
		{"H.264 of a high profile", fmt.Sprintf(h264, "640c1f"), nil, "0 video rejected"},
		{"no codec", "m=audio 9 UDP/TLS/RTP/SAVPF 13\r\na=mid:0\r\na=rtpmap:13 CN/8000\r\n", nil, "0 audio rejected"},
		{"no encryption", "m=audio 9 RTP/AVP 0\r\na=mid:0\r\n", nil, "0 audio rejected"},
		{"a closed section", "m=audio 0 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n", nil, "0 audio rejected"},
		{"sendonly", audio + "a=sendonly\r\n", nil, "0 audio G722=9 telephone-event=101 recvonly"},
		{"recvonly", audio + "a=recvonly\r\n", nil, "0 audio G722=9 telephone-event=101 sendonly"},
		{"inactive", audio + "a=inactive\r\n", nil, "0 audio G722=9 telephone-event=101 inactive"},
	}

	for _, tt := range tests {
		d, err := sdp.Parse("v=0\r\n" + tt.offer)
		if err != nil {
			t.Errorf("Parse of %s = %v", tt.name, err)
			continue
		}
		answer := d.Sections[0].Answer(tt.preferred...)
		if got := summary([]sdp.Section{answer}); got != tt.want {
			t.Errorf("the answer to %s is %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestOfferAccept(t *testing.T) {
	d, err := sdp.Parse(offers(t)["chromium-audio-video"])
	if err != nil {
		t.Fatal(err)
	}
	agreed := d.Sections[1].Answer()
	offer := agreed.Offer("7")
	if offer.Mid != "7" {
		t.Errorf("the mid of the offer is %q, want 7", offer.Mid)
	}
	if offer.Setup != "actpass" {
		t.Errorf("the setup of the offer is %q, want actpass", offer.Setup)
	}
	if diff := cmp.Diff(agreed.Codecs, offer.Codecs); diff != "" {
		t.Errorf("the codecs of the offer differ from the agreed ones (-agreed +offered):\n%s", diff)
	}
	if diff := cmp.Diff(agreed.Extensions, offer.Extensions); diff != "" {
		t.Errorf("the extensions of the offer differ from the agreed ones (-agreed +offered):\n%s", diff)
	}

	// The answer uses a different payload type and no header extension.
	answered := sdp.Section{
		Kind:      "video",
		Direction: sdp.SendOnly,
		Codecs:    []sdp.Codec{{Type: 120, Name: "vp8", Clock: 90000}},
	}
	got := offer.Accept(&answered)
	if len(got.Codecs) != 1 {
		t.Fatalf("Accept returned the codecs %+v, want one", got.Codecs)
	}
	if got.Codecs[0].Type != 120 {
		t.Errorf("the payload type is %d, want 120 as in the answer", got.Codecs[0].Type)
	}
	if got.Direction != sdp.ReceiveOnly {
		t.Errorf("the direction is %s, want %s", got.Direction, sdp.ReceiveOnly)
	}
	if got.Extensions != nil {
		t.Errorf("the extensions are %v, want none", got.Extensions)
	}
}

// FuzzParse looks for descriptions that break the parser, or that change when they are written and
// parsed again.
func FuzzParse(f *testing.F) {
	for _, text := range offers(f) {
		f.Add(text)
	}
	section := "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF" + strings.Repeat(" 96", 64) + "\r\na=mid:0\r\n"
	f.Add(section + strings.Repeat("a=rtpmap:96 opus/48000/2\r\n", 1000))
	f.Add(section + strings.Repeat("a=fmtp:96 "+strings.Repeat("x", 400)+"\r\n", 150))
	f.Add(section + strings.Repeat("a=extmap:1 x\r\n", 1000))

	bound := fuzzcost.Bound{CPU: 20 * time.Millisecond, CPUPerByte: time.Microsecond, Heap: 1 << 20, PerByte: 64}
	f.Fuzz(func(t *testing.T, text string) {
		var d *sdp.Description
		var err error
		bound.Check(t, len(text), func() { d, err = sdp.Parse(text) })
		if err != nil {
			if !errors.Is(err, problem.Invalid) {
				t.Fatalf("Parse = %v, want %v", err, problem.Invalid)
			}
			return
		}

		descriptions := []sdp.Description{*d}
		for i := range d.Sections {
			answer := d.Sections[i].Answer()
			descriptions = append(descriptions, sdp.Description{Lite: true, Sections: []sdp.Section{answer}})
			if !answer.Rejected {
				offer := answer.Offer("0")
				descriptions = append(descriptions, sdp.Description{Sections: []sdp.Section{offer}})
			}
		}
		for _, d := range descriptions {
			checkWriting(t, d)
		}
	})
}

// checkWriting checks that a written description can be parsed, and that it does not change when it
// is parsed and written again.
func checkWriting(t *testing.T, d sdp.Description) {
	t.Helper()
	once, err := sdp.Parse(d.String())
	if err != nil {
		t.Fatalf("parsing a written description: %v\n%s", err, d.String())
	}
	twice, err := sdp.Parse(once.String())
	if err != nil {
		t.Fatalf("parsing a description that was written again: %v\n%s", err, once.String())
	}
	if got, want := twice.String(), once.String(); got != want {
		t.Fatalf("the description that was written again is\n%s\nwant\n%s", got, want)
	}
}
