package contract

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// TestMediaInAnObjectStore shows that a server whose media is in an object store can redirect
// clients to that store, as the document describes.
func TestMediaInAnObjectStore(t *testing.T) {
	harness.OneBackend(t)
	store, bucket := servers.S3(t)
	env := []string{"SELVAGE_S3__SERVE=redirect"}
	for name, value := range store.Env(bucket) {
		env = append(env, name+"="+value)
	}
	p := harness.StartConfig(t, harness.Config{Env: env}).NewProject(t)

	song, err := os.ReadFile("../../recordings/testdata/speech_cbr32.mp3")
	if err != nil {
		t.Fatal(err)
	}

	for kind, file := range map[string][]byte{"audio/wav": harness.Tone(8000, 20), "audio/mpeg": song} {
		up := p.Post(t, p.LaML("/Recordings"), p.Basic(), harness.Body(kind, file)).Want(t, 201).Object(t)
		sid, _ := up["sid"].(string)
		endings := []string{"", ".wav"}
		if kind == "audio/mpeg" {
			endings = []string{".mp3"}
		}
		for _, ending := range endings {
			to := p.Get(t, p.LaML("/Recordings/"+sid+ending)).Want(t, 307).Header.Get("Location")
			if got := fetch(t, to); !strings.HasPrefix(to, store.Endpoint) || !bytes.Equal(got, file) {
				t.Errorf("%s leads to %s with %d bytes, want the %d of the upload", ending, to, len(got), len(file))
			}
		}
	}
}

// fetch returns the response of the object store at a URL.
func fetch(t *testing.T, url string) []byte {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s, %v", url, res.Status, err)
	}
	return body.Bytes()
}
