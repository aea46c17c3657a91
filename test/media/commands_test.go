package media

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// An importLine is a line that `selvage recording import -o json` prints.
type importLine struct {
	Path, Sid, Status string
}

// TestCorpusByCommands imports the corpus from a directory, from a watched directory and from another
// server. The result is the same with each kind of storage.
func TestCorpusByCommands(t *testing.T) {
	harness.OneBackend(t)
	first := harness.Start(t)
	origin := first.NewProject(t)
	files := importCorpus(t, first, nil, origin)
	want := make(map[string]string)
	for name, in := range files {
		want[name] = outcome(t, origin, in)
	}

	for name, env := range storages(t) {
		t.Run(name, func(t *testing.T) {
			s := harness.StartConfig(t, harness.Config{Env: env})
			wantSame := func(way string, p *harness.Project, got map[string]importLine) {
				t.Helper()
				for name := range want {
					if media := outcome(t, p, got[name]); media != want[name] {
						t.Errorf("importing %s with %s resulted in %s, want %s", name, way, media, want[name])
					}
				}
			}
			p := s.NewProject(t)
			wantSame("import", p, importCorpus(t, s, env, p))
			watched := s.NewProject(t)
			wantSame("import --watch", watched, watchCorpus(t, s, env, watched))
			copied := s.NewProject(t)
			wantCopies(t, origin, copied, files, importFrom(t, s, env, copied, origin))
		})
	}
}

// storages returns the settings of a server for each kind of storage.
func storages(t *testing.T) map[string][]string {
	t.Helper()
	const encrypted = "SELVAGE_RECORDINGS__ENCRYPT=true"
	bucket := func() (env []string) {
		store, name := servers.S3(t)
		for key, value := range store.Env(name) {
			env = append(env, key+"="+value)
		}
		return env
	}
	return map[string][]string{
		"a directory":            nil,
		"an encrypted directory": {encrypted},
		"a bucket":               bucket(),
		"an encrypted bucket":    append(bucket(), encrypted),
	}
}

// outcome describes what an import did with a file, and the media that the server returns for it.
func outcome(t *testing.T, p *harness.Project, in importLine) string {
	t.Helper()
	if in.Sid == "" {
		return in.Status
	}
	return in.Status + ", " + strings.Join(fetchMedia(t, p, in.Sid), ", ")
}

// fetchMedia fetches a recording as WAV, as MP3 and as it was uploaded. It returns the status and
// digest of each response.
func fetchMedia(t *testing.T, p *harness.Project, sid string) (all []string) {
	t.Helper()
	for _, format := range []string{".wav", ".mp3", ".wav?Original=true"} {
		a := p.Get(t, p.LaML("/Recordings/"+sid+format))
		digest := sha256.Sum256(a.Body)
		if a.Status != 200 {
			digest = [sha256.Size]byte{} // errors differ, because they contain the recording's ID
		}
		all = append(all, fmt.Sprintf("%d %x", a.Status, digest[:8]))
	}
	return all
}

// importing returns a command that imports recordings into p.
func importing(
	ctx context.Context, t *testing.T, s *harness.Server, env []string, p *harness.Project, args ...string,
) *exec.Cmd {
	args = append([]string{"recording", "import", "--data", s.Data, "--project", p.ID, "-o", "json"}, args...)
	cmd := exec.CommandContext(ctx, harness.Binary(t), args...)
	cmd.Env = slices.Concat(os.Environ(), s.Backends, env)
	return cmd
}

// runImport runs a command that may reject some recordings, and returns the lines that it prints.
func runImport(t *testing.T, cmd *exec.Cmd) (all []importLine) {
	t.Helper()
	out, err := cmd.Output()
	var status *exec.ExitError
	if err != nil && (!errors.As(err, &status) || len(out) == 0) {
		t.Fatalf("selvage %v: %v", cmd.Args, err)
	}
	for line := range strings.Lines(string(out)) {
		all = append(all, parsed(t, line))
	}
	return all
}

func parsed(t *testing.T, line string) (in importLine) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &in); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return in
}

// byName returns outcomes by the names of their files.
func byName(all []importLine) map[string]importLine {
	files := make(map[string]importLine)
	for _, in := range all {
		files[filepath.Base(in.Path)] = in
	}
	return files
}

// importCorpus imports the corpus from its directory.
func importCorpus(t *testing.T, s *harness.Server, env []string, p *harness.Project) map[string]importLine {
	t.Helper()
	files := byName(runImport(t, importing(t.Context(), t, s, env, p, corpus)))
	if len(files) < len(verdicts(t)) {
		t.Fatalf("%d files were imported, want the %d of the corpus", len(files), len(verdicts(t)))
	}
	return files
}

// watchCorpus imports the corpus from a watched directory. It checks that each file has been moved
// away.
func watchCorpus(t *testing.T, s *harness.Server, env []string, p *harness.Project) map[string]importLine {
	t.Helper()
	dir := t.TempDir()
	for name := range verdicts(t) {
		content, err := os.ReadFile(filepath.Join(corpus, name))
		path, old := filepath.Join(dir, name), time.Now().Add(-2*time.Hour)
		if err := errors.Join(err, os.WriteFile(path, content, 0o600), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := importing(ctx, t, s, env, p, "--watch", dir, "--settle", "1h")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []importLine
	for lines := bufio.NewScanner(out); len(all) < len(verdicts(t)) && lines.Scan(); {
		all = append(all, parsed(t, lines.Text()))
	}
	stop()
	_ = cmd.Wait() // it was killed

	for _, in := range all {
		if _, err := os.Stat(in.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was not moved away: %v", in.Path, err)
		}
	}
	return byName(all)
}

// importFrom imports the recordings of another project through the API of its server. It returns
// the outcomes by the Sids of the originals.
func importFrom(
	t *testing.T, s *harness.Server, env []string, p, from *harness.Project,
) map[string]importLine {
	t.Helper()
	cmd := importing(t.Context(), t, s, env, p, "--from", from.HTTP, "--account", from.ID)
	cmd.Stdin = strings.NewReader(from.Key)
	copies := make(map[string]importLine)
	for _, in := range runImport(t, cmd) {
		copies[strings.TrimSuffix(filepath.Base(in.Path), ".wav")] = in
	}
	return copies
}

// wantCopies checks that each completed recording of origin was copied with its uploaded file. A
// file that has no header, and whose Content-Type does not describe it, must have been copied as
// WAV.
func wantCopies(t *testing.T, origin, p *harness.Project, files, copies map[string]importLine) {
	t.Helper()
	for name, in := range files {
		if in.Sid == "" {
			continue
		}
		var doc struct{ Status string }
		origin.Get(t, origin.LaML("/Recordings/"+in.Sid+".json"), origin.Basic()).Want(t, 200).Read(t, &doc)
		made, ok := copies[in.Sid]
		if ok != (doc.Status == "completed") {
			t.Errorf("%s, which is %s, was copied: %v", name, doc.Status, ok)
		}
		if !ok {
			continue
		}
		want, got := fetchMedia(t, origin, in.Sid), fetchMedia(t, p, made.Sid)
		if filepath.Ext(name) == ".sln" {
			want, got = want[:2], got[:2]
		}
		if !slices.Equal(got, want) {
			t.Errorf("the copy of %s is %v, want %v", name, got, want)
		}
	}
}
