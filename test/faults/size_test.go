package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// An installation is a server with many rows and recordings. Its tokens must stay valid.
type installation struct {
	*load
	owner   harness.Subscriber
	refresh string // newest refresh token of the owner
	sids    []string
	env     []string // environment variables of the server
}

// sizes returns the numbers of subscribers and recordings in an installation.
func sizes() (subscribers, recordings int) {
	if os.Getenv("LONG") == "1" {
		return 100_000, 10_000
	}
	return 200, 40
}

// TestMoveInstallation backs up an installation under load, and restores it elsewhere. Then it
// moves the installation to PostgreSQL, Redis and an object store, and back to SQLite and files.
// Tokens stay valid when it moves. With LONG=1 in the environment, the installation is large.
func TestMoveInstallation(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	store, bucket := servers.S3(t)
	env := []string{"SELVAGE_TOKENS__ACCESS_JWT=2h"} // longer than filling and moving take
	for name, value := range store.Env(bucket) {
		if name != "SELVAGE_MEDIA" {
			env = append(env, name+"="+value)
		}
	}
	in := fill(t, env)
	t.Run("backed up and restored", in.restored)

	in.move(t, place{rows: servers.Postgres(t), sessions: servers.Redis(t),
		media: store.Env(bucket)["SELVAGE_MEDIA"]})
	back := t.TempDir()
	in.move(t, place{
		rows:     "sqlite:" + filepath.Join(back, "rows.db"),
		media:    "dir:" + filepath.Join(back, "media"),
		sessions: "sqlite:" + filepath.Join(back, "sessions.db"),
	})
}

// A place holds the URLs of an installation's database, session store and media.
type place struct{ rows, sessions, media string }

func (p place) env() []string {
	return []string{"SELVAGE_DATABASE=" + p.rows, "SELVAGE_SESSIONS=" + p.sessions, "SELVAGE_MEDIA=" + p.media}
}

// fill starts a server with environment variables, and adds the rows, recordings and tokens.
func fill(t *testing.T, env []string) *installation {
	t.Helper()
	subscribers, recordings := sizes()
	s := harness.StartConfig(t, harness.Config{Backends: []string{}, Env: env})
	p := s.NewProject(t)
	in := &installation{
		load:  newVerifications(t, p),
		owner: p.NewSubscriber(t),
		env:   env,
	}
	tokens, _ := in.client.SignIn(t, in.owner, "openid offline_access")
	in.refresh = tokens.RefreshToken

	list := new(strings.Builder)
	list.WriteString("email,first_name\n")
	for i := range subscribers {
		fmt.Fprintf(list, "person%d@example.com,Person %d\n", i, i)
	}
	s.Command(t, list.String(), "subscriber", "import", "-", "--project", p.ID)

	var uploads sync.WaitGroup
	sids := make([]string, recordings)
	const parallel = 4
	for worker := range parallel {
		uploads.Go(func() {
			for i := worker; i < recordings; i += parallel {
				sids[i] = p.Upload(t, harness.Tone(8000+i, 2))
			}
		})
	}
	uploads.Wait()
	in.sids = sids
	return in
}

// restored creates a backup under load, restores it into another directory, and signs in there.
// Access tokens from before are not valid there.
func (in *installation) restored(t *testing.T) {
	dir := t.TempDir()
	key, archive := filepath.Join(dir, "key.txt"), filepath.Join(dir, "backups")+"/"
	recipient := strings.TrimSpace(in.project.Command(t, "", "backup", "key", key))
	in.backUp(t, archive, recipient)
	in.project.Command(t, "", "backup", "verify", archive, "--identity", key)

	data := filepath.Join(dir, "data")
	master, err := os.ReadFile(filepath.Join(in.project.Data, "master.key"))
	if err != nil {
		t.Fatal(err)
	}

	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "master.key"), master, 0o600); err != nil {
		t.Fatal(err)
	}

	restore := exec.Command(harness.Binary(t), "backup", "restore", archive, "--identity", key, "--data", data)
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("backup restore: %v\n%s", err, out)
	}

	there := in.at(harness.StartConfig(t, harness.Config{Data: data, Backends: []string{}}))
	there.wantComplete(t)
	there.client.SignIn(t, in.owner, "openid")
	for _, v := range in.tokens {
		there.project.Get(t, v.path, harness.Bearer(v.token)).Want(t, 401)
	}
}

// move copies the rows and the media while the server is running, and again after it has stopped.
// It then starts the server in the new place, where all tokens must be valid.
func (in *installation) move(t *testing.T, to place) {
	t.Helper()
	for _, running := range []bool{true, false} {
		began := time.Now()
		in.project.Command(t, "", "migrate", "copy", "--to", to.rows)
		copied := time.Now()
		in.project.Command(t, "", "migrate", "copy-media", "--to", to.media)
		t.Logf("copying took %v for rows and %v for media (server running: %v)",
			copied.Sub(began), time.Since(copied), running)
		if running {
			if err := in.project.Stop(t); err != nil {
				t.Fatalf("stopping the server: %v", err)
			}
		}
	}

	// The address stays the same, because it is part of the issuer.
	listen := []string{"--listen", strings.TrimPrefix(in.project.HTTP, "http://")}
	*in = *in.at(harness.StartConfig(t, harness.Config{
		Data:     in.project.Data,
		Backends: to.env(),
		Args:     listen,
		Env:      in.env,
	}))
	in.wantComplete(t)
	for _, v := range in.tokens {
		in.project.Get(t, v.path, harness.Bearer(v.token)).Want(t, 200)
	}

	tokens, err := in.client.QuickRefresh(in.refresh)
	if err != nil {
		t.Fatalf("refreshing a token from before the move: %v", err)
	}
	in.refresh = tokens.RefreshToken
	in.addTokens()
}

// at returns the same installation on another server.
func (in *installation) at(s *harness.Server) *installation {
	p, c := *in.project, *in.client
	p.Server, c.Project = s, &p
	return &installation{
		load:    &load{t: in.t, project: &p, client: &c, cookies: in.cookies, tokens: in.tokens},
		owner:   in.owner,
		refresh: in.refresh,
		sids:    in.sids,
		env:     in.env,
	}
}

// wantComplete checks the audit trail and all media, and looks up a subscriber and two recordings.
func (in *installation) wantComplete(t *testing.T) {
	t.Helper()
	p := in.project
	if report := p.CLI(t, "", "audit", "verify"); report["whole"] != true {
		t.Errorf("audit verify reported %v, want an intact trail", report)
	}
	p.Command(t, "", "recording", "verify", "--project", p.ID)
	subscribers, _ := sizes()
	last := fmt.Sprintf("person%d@example.com", subscribers-1)
	p.Command(t, "", "subscriber", "show", last, "--project", p.ID)
	for _, sid := range []string{in.sids[0], in.sids[len(in.sids)-1]} {
		p.Get(t, p.LaML("/Recordings/"+sid+".wav"), p.Basic()).Want(t, 200)
	}
}
