package media

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"mime/multipart"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

const corpus = "../../recordings/testdata"

// A verdict is the result that the corpus expects for a file.
type verdict struct {
	Result    string  `json:"result"` // ok, repair or err
	Absent    bool    `json:"may_accept_absent"`
	Codec     string  `json:"codec"`
	Rate      int     `json:"sample_rate"`
	Channels  int     `json:"channels"`
	Duration  float64 `json:"duration_s"`
	Tolerance float64 `json:"tolerance_s"`
}

// frames returns the number of samples per channel.
func (v verdict) frames() float64 { return v.Duration * float64(v.Rate) }

func verdicts(t *testing.T) map[string]verdict {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(corpus, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Files map[string]verdict }
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Files
}

// uploadNamed uploads a file in a form that contains its name.
func uploadNamed(t *testing.T, p *harness.Project, name string, content []byte) harness.Answer {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.Post(t, p.LaML("/Recordings.json"), p.Basic(), harness.Body(w.FormDataContentType(), body.Bytes()))
}

// TestJudgesAgree shows that ffprobe, sox, lame and mp3val accept the WAV file and the encoded MP3
// file that the server returns for each valid file of the corpus. Both have the expected format and
// length.
func TestJudgesAgree(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "ffprobe", "sox", "lame", "mp3val")
	p := harness.Shared(t).NewProject(t)
	for name, want := range verdicts(t) {
		if want.Result == "err" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			content, err := os.ReadFile(filepath.Join(corpus, name))
			if err != nil {
				t.Fatal(err)
			}

			doc := uploadNamed(t, p, name, content).Want(t, 201).Object(t)
			path := p.LaML("/Recordings/" + fmt.Sprint(doc["sid"]))
			judgeWAV(t, p, path+".wav", want)
			if want.Codec != "mp3" { // the server encodes other files as MP3
				judgeMP3(t, p, path+".mp3", want)
			}
		})
	}
}

// fetch saves a file from the server and checks that its ranges match the whole file.
func fetch(t *testing.T, p *harness.Project, path string) (file string, body []byte) {
	t.Helper()
	body = p.Get(t, path).Want(t, 200).Body
	checkRanges(t, p, path, body)
	file = filepath.Join(t.TempDir(), "served"+filepath.Ext(path))
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, body
}

// checkRanges fetches 200 random ranges and checks that they match the whole file.
func checkRanges(t *testing.T, p *harness.Project, path string, whole []byte) {
	t.Helper()
	n := len(whole)
	random := rand.New(rand.NewPCG(uint64(n), 1))
	etag := p.Do(t, "HEAD", path).Want(t, 200).Header.Get("ETag")

	for i := range 200 {
		from, most := random.IntN(n), 2048
		if i%10 == 0 {
			most = n
		}
		last := min(n, from+1+random.IntN(most)) - 1

		a := p.Get(t, path, harness.Header("Range", fmt.Sprintf("bytes=%d-%d", from, last)),
			harness.Header("If-Range", etag)).Want(t, 206)
		if !bytes.Equal(a.Body, whole[from:last+1]) ||
			a.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", from, last, n) {
			t.Fatalf("%s: bytes %d-%d differ from the whole file; Content-Range %q", filepath.Ext(path),
				from, last, a.Header.Get("Content-Range"))
		}
	}
}

// judgeWAV checks the format with ffprobe and the samples with sox.
func judgeWAV(t *testing.T, p *harness.Project, path string, want verdict) {
	t.Helper()
	file, body := fetch(t, p, path)
	found := probe(t, file)
	frames := int(math.Round(want.frames()))
	if found.Codec != "pcm_s16le" || found.Rate != strconv.Itoa(want.Rate) ||
		found.Channels != want.Channels || !about(found.Duration, want.Duration, max(want.Tolerance, 1e-4)) {
		t.Errorf("WAV: ffprobe found %+v, want pcm_s16le with %+v", found, want)
	}

	if got := run(t, "soxi", "-s", file); want.Tolerance == 0 && got != strconv.Itoa(frames) {
		t.Errorf("WAV: sox counted %s samples, want %d", got, frames)
	}

	raw := filepath.Join(t.TempDir(), "samples.raw")
	run(t, "sox", "-D", file, "-e", "signed", "-b", "16", "-L", raw)
	samples, err := os.ReadFile(raw)
	if err != nil || !bytes.Contains(body, samples) || len(body)-len(samples) > 8192 {
		t.Errorf("WAV: sox read %d bytes (%v) that are not in the served file of %d bytes", len(samples),
			err, len(body))
	}
}

// judgeMP3 checks the format with ffprobe, the frames with mp3val and the length with lame.
func judgeMP3(t *testing.T, p *harness.Project, path string, want verdict) {
	t.Helper()
	file, _ := fetch(t, p, path)
	found := probe(t, file)
	if found.Codec != "mp3" || !about(found.Duration, want.Duration, 0.3) {
		t.Errorf("MP3: ffprobe found %+v, want about %v s", found, want.Duration)
	}

	complaints := run(t, "mp3val", file)
	if found := strings.Contains(complaints, "Too few MPEG frames"); found &&
		want.Duration < 1 { // mp3val always warns about files this short
		complaints = strings.Replace(complaints, "WARNING", "", 1)
	}
	if strings.Contains(complaints, "WARNING") || strings.Contains(complaints, "PROBLEM") ||
		!strings.Contains(complaints, "MPEG frames") {
		t.Errorf("MP3: mp3val reported %s", complaints)
	}

	rate, err := strconv.Atoi(found.Rate)
	if err != nil {
		t.Fatalf("MP3: ffprobe found the sample rate %q", found.Rate)
	}
	decoded := filepath.Join(t.TempDir(), "decoded.wav")
	run(t, "lame", "--quiet", "--decode", file, decoded)
	got, _ := strconv.ParseFloat(run(t, "soxi", "-s", decoded), 64)
	if exact := want.Duration * float64(rate); math.Abs(got-exact) > 1+want.Tolerance*float64(rate) {
		t.Errorf("MP3: lame decoded %v samples at %d Hz, want %v", got, rate, exact)
	}

	if got := run(t, "soxi", "-r", file); got != found.Rate {
		t.Errorf("MP3: sox found %s Hz, but ffprobe found %s Hz", got, found.Rate)
	}
}

// about reports whether a text is a number that differs from want by at most within.
func about(text string, want, within float64) bool {
	got, err := strconv.ParseFloat(text, 64)
	return err == nil && math.Abs(got-want) <= within
}

// run runs a tool and returns its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, faults.String())
	}
	return strings.TrimSpace(string(out))
}

// TestOriginalsAreKept shows that MP3 files are returned unchanged. The server still measures their
// loudness and their peaks.
func TestOriginalsAreKept(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	for name, want := range verdicts(t) {
		if want.Result == "err" || want.Codec != "mp3" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(corpus, name))
		if err != nil {
			t.Fatal(err)
		}

		sid := fmt.Sprint(uploadNamed(t, p, name, content).Want(t, 201).Object(t)["sid"])
		for _, as := range []string{".wav?Original=true", ".mp3"} {
			if got := p.Get(t, p.LaML("/Recordings/"+sid+as)).Want(t, 200).Body; !bytes.Equal(got, content) {
				t.Errorf("%s, fetched as %s, has %d bytes, want the %d of the original", name, as, len(got),
					len(content))
			}
		}
		p.Get(t, p.LaML("/Recordings/"+sid+".peaks.json")).Want(t, 200)

		doc := p.Get(t, p.LaML("/Recordings/"+sid+".json"), p.Basic()).Want(t, 200).Object(t)
		if media := doc["media"].(map[string]any); media["lufs"] == nil || media["codec"] != want.Codec {
			t.Errorf("%s: the recording has %v, want a loudness and the codec", name, media)
		}
	}
}
