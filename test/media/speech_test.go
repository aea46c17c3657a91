package media

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// speech returns recordings of speech of different lengths, by name.
func speech(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{"/beep.wav", "/hello-world.wav", "/demo-congrats.wav", "/demo-instruct.wav"} {
		path := harness.Debian(t, "asterisk-core-sounds-en-wav", name)[0]
		wav, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = wav
	}
	return files
}

// TestSpeechIsUnchanged shows that a recording is returned unchanged at all its URLs. The test
// uploads each recording raw and in a form, and imports it with a command.
func TestSpeechIsUnchanged(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	ways := map[string]func(*testing.T, *harness.Project, string, []byte) string{
		"raw":       uploadRaw,
		"multipart": uploadForm,
		"import":    importFile,
	}

	for name, wav := range speech(t) {
		for way, upload := range ways {
			t.Run(way+" "+name, func(t *testing.T) {
				sid := upload(t, p, name, wav)
				for _, prefix := range []string{"/api/laml/2010-04-01", "/2010-04-01"} {
					for _, end := range []string{"", ".wav"} {
						path := prefix + "/Accounts/" + p.ID + "/Recordings/" + sid + end
						if got := p.Get(t, path).Want(t, 200).Body; !bytes.Equal(got, wav) {
							t.Errorf("GET %s returned %d bytes, not the %d that were stored", path, len(got), len(wav))
						}
					}
				}
			})
		}
	}
}

func uploadRaw(t *testing.T, p *harness.Project, _ string, wav []byte) string {
	return p.Upload(t, wav)
}

const callSid = "7d1cf5b9-6f0d-4c39-8b3f-0f2f6d7f2c11"

func uploadForm(t *testing.T, p *harness.Project, name string, wav []byte) string {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.WriteField("CallSid", callSid); err != nil {
		t.Fatal(err)
	}

	part, err := w.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write(wav); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	a := p.Post(t, p.LaML("/Recordings.json"), p.Basic(),
		harness.Body(w.FormDataContentType(), body.Bytes())).Want(t, 201).Object(t)
	if a["call_sid"] != callSid {
		t.Errorf("call_sid = %v, want %s", a["call_sid"], callSid)
	}
	return fmt.Sprint(a["sid"])
}

func importFile(t *testing.T, p *harness.Project, name string, wav []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, wav, 0o600); err != nil {
		t.Fatal(err)
	}

	first := p.CLI(t, "", "recording", "import", "--project", p.ID, path)
	if first["status"] != "stored" || first["path"] != path {
		t.Errorf("recording import = %v, want success", first)
	}

	again := p.CLI(t, "", "recording", "import", "--project", p.ID, path)
	if again["status"] != "duplicate" || again["sid"] != first["sid"] {
		t.Errorf("recording import again = %v, want a duplicate of %v", again, first["sid"])
	}
	return fmt.Sprint(first["sid"])
}

// TestFFProbeAgrees shows that ffprobe finds the same format in a served file as in the original.
// The recording's document must contain the same channels and duration.
func TestFFProbeAgrees(t *testing.T) {
	harness.Need(t, "ffprobe")
	p := harness.Shared(t).NewProject(t)
	for name, wav := range speech(t) {
		t.Run(name, func(t *testing.T) {
			sid := p.Upload(t, wav)
			path := filepath.Join(t.TempDir(), "original.wav")
			if err := os.WriteFile(path, wav, 0o600); err != nil {
				t.Fatal(err)
			}

			got, want := probe(t, p.HTTP+p.LaML("/Recordings/"+sid+".wav")), probe(t, path)
			if got != want {
				t.Errorf("ffprobe finds %+v, want %+v", got, want)
			}

			doc := p.Get(t, p.LaML("/Recordings/"+sid+".json"), p.Basic()).Want(t, 200).Object(t)
			if fmt.Sprint(doc["channels"]) != strconv.Itoa(want.Channels) ||
				fmt.Sprint(doc["duration"]) != strconv.Itoa(want.wholeSeconds(t)) {
				t.Errorf("the document has %v channels and %v s, ffprobe found %+v", doc["channels"],
					doc["duration"], want)
			}
		})
	}
}

// A stream is the information that ffprobe prints about an audio stream.
type stream struct {
	Codec    string `json:"codec_name"`
	Rate     string `json:"sample_rate"`
	Channels int    `json:"channels"`
	Duration string `json:"duration"`
}

// wholeSeconds returns the duration in the form that recordings use: rounded to seconds, at least
// one.
func (s stream) wholeSeconds(t *testing.T) int {
	t.Helper()
	d, err := strconv.ParseFloat(s.Duration, 64)
	if err != nil {
		t.Fatal(err)
	}
	return max(1, int(d+0.5))
}

func probe(t *testing.T, target string) stream {
	t.Helper()
	out, err := exec.Command("ffprobe", "-v", "error", "-show_streams", "-of", "json", target).Output()
	if err != nil {
		t.Fatalf("ffprobe %s: %v", target, err)
	}
	var found struct{ Streams []stream }
	if err := json.Unmarshal(out, &found); err != nil || len(found.Streams) != 1 {
		t.Fatalf("ffprobe %s: %v: %s", target, err, out)
	}
	return found.Streams[0]
}
