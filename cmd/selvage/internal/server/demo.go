package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// firstRunFile keeps what the first start has printed.
const firstRunFile = "first-run.txt"

// speech is what the demo's recordings say: see demo/NOTICE.
//
//go:embed demo/welcome.wav demo/workshop.wav
var speech embed.FS

// A demo is what a first start makes, with secrets that are random each time.
type demo struct {
	project    fabric.Project
	key        string
	subscriber fabric.Subscriber
	password   string
	spa        idp.Client
	service    idp.Client
	secret     string
	sids       []string
	setup      string // the link for the first operator; "" where there is one
}

// firstRun makes the demo on the first start of a server that only this machine
// can reach, and gives what to tell about it; "" on every other start.
func (a *App) firstRun(ctx context.Context) (text string, err error) {
	file := filepath.Join(a.Config.Data, firstRunFile)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) || a.Config.NoDemo || !a.Local() ||
		!a.Config.Services.All() {
		return "", nil
	}
	if err := a.undo(ctx); err != nil {
		return "", fmt.Errorf("removing an unfinished demo: %w", err)
	}
	some, err := a.Fabric.ListProjects(ctx, page.Query{Size: 1})
	if err != nil || len(some.Items) > 0 {
		return "", err
	}
	d, err := a.seed(ctx)
	if err != nil {
		return "", fmt.Errorf("making the demo: %w", err)
	}
	if d.setup, err = a.setupLink(ctx); err != nil {
		return "", err
	}
	if err := a.keepDemo(d); err != nil {
		return "", err
	}
	text = a.describe(d)
	if err := datadir.Replace(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	return text, os.Remove(a.unfinished())
}

// unfinished names the file that holds the id of the demo's project while the
// demo is being made.
func (a *App) unfinished() string { return filepath.Join(a.Config.Data, ".first-run") }

// undo deletes what a start that was killed has made of the demo.
func (a *App) undo(ctx context.Context) error {
	id, err := os.ReadFile(a.unfinished())
	if err != nil {
		return nil // as nearly always: there is no such file
	}
	if err := a.Fabric.DeleteProject(ctx, string(id)); err != nil && !errors.Is(err, problem.NotFound) {
		return err
	}
	return os.Remove(a.unfinished())
}

// Local reports whether only this machine can reach the server: it listens on
// loopback, and no proxy in front of it has a name elsewhere.
func (a *App) Local() bool {
	tls := a.Config.TLSAddress()
	return a.Config.Listen.Loopback() && (tls == config.Off || tls.Loopback()) && a.Where.Local()
}

// seed makes the demo.
func (a *App) seed(ctx context.Context) (d demo, err error) {
	if d.project, err = a.Fabric.CreateProject(ctx, "Demo"); err != nil {
		return d, err
	}
	if err := datadir.Replace(a.unfinished(), []byte(d.project.ID), 0o600); err != nil {
		return d, err
	}
	scopes := []fabric.Scope{fabric.Voice, fabric.Messaging, fabric.Fax, fabric.Video}
	name := "demo"
	if _, d.key, err = a.Fabric.CreateAPIKey(ctx, d.project.ID, fabric.APIKeyInput{Name: &name, Scopes: scopes}, nil); err != nil {
		return d, err
	}
	if err := a.seedSubscriber(ctx, &d); err != nil {
		return d, err
	}
	if err := errors.Join(a.seedClients(ctx, &d), a.seedResources(ctx, d)); err != nil {
		return d, err
	}
	return d, a.seedRecordings(ctx, &d)
}

func (a *App) seedSubscriber(ctx context.Context, d *demo) (err error) {
	email, first, last := "ada@example.com", "Ada", "Example"
	d.password = strings.ToLower(rand.Text()[:16])
	d.subscriber, err = a.Fabric.CreateSubscriber(ctx, d.project.ID, fabric.SubscriberInput{
		Email: &email, Password: &d.password, Profile: fabric.Profile{FirstName: &first, LastName: &last},
	})
	return err
}

// seedClients makes a client for an app in a browser, wherever on this machine it
// is likely to be served, and one for a backend.
func (a *App) seedClients(ctx context.Context, d *demo) (err error) {
	d.spa, _, err = a.IDP.CreateClient(ctx, idp.Client{
		ProjectID: d.project.ID, Name: "Demo app", Type: idp.SPA, FirstParty: true,
		RedirectURIs: []string{"http://localhost:3000/callback", "http://localhost:5173/callback",
			a.Where.Public + demoPath},
		LogoutURIs: []string{"http://localhost:3000/", "http://localhost:5173/", a.Where.Public + demoPath},
		Scopes:     []string{"openid", "profile", "email", "offline_access", string(fabric.Voice)},
	})
	if err != nil {
		return err
	}
	d.service, d.secret, err = a.IDP.CreateClient(ctx, idp.Client{
		ProjectID: d.project.ID, Name: "Demo backend", Type: idp.Service, Scopes: []string{string(fabric.Voice)},
	})
	return err
}

// seedResources makes what the demo's calls were to: a script at /public/welcome, and a
// room at /public/workshop.
func (a *App) seedResources(ctx context.Context, d demo) error {
	for _, r := range []struct{ kind, members string }{
		{"swml_script", `{"display_name": "Welcome", "contents": {"version": "1.0.0", "sections": {"main": ["answer", {"play": {"url": "say:Welcome"}}, "hangup"]}}}`},
		{"video_room", `{"name": "workshop", "display_name": "Workshop"}`},
	} {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(r.members), &members); err != nil {
			return fmt.Errorf("reading the demo's %s: %w", r.kind, err)
		}
		if _, err := a.Fabric.CreateResource(ctx, d.project.ID, a.Fabric.Kinds().ByType(r.kind), members); err != nil {
			return err
		}
	}
	return nil
}

// calls are those that the demo's recordings were made of.
var calls = []struct{ name, from, to, direction string }{
	{"welcome", "/public/welcome", "/private/ada", "inbound"},
	{"workshop", "/private/ada", "/public/workshop", "outbound"},
}

func (a *App) seedRecordings(ctx context.Context, d *demo) error {
	for _, call := range calls {
		wav, err := speech.ReadFile("demo/" + call.name + ".wav")
		if err != nil {
			return err
		}
		about := recordings.Description{
			Metadata: recordings.Metadata{CallSid: uuid.NewString(), From: call.from, To: call.to,
				Direction: call.direction},
			SubscriberID: d.subscriber.ID,
		}
		r, _, err := a.Recordings.Ingest(ctx, recordings.Upload{
			ProjectID: d.project.ID, Body: bytes.NewReader(wav),
			Describe: func() (recordings.Description, error) { return about, nil },
		})
		if err != nil {
			return err
		}
		d.sids = append(d.sids, r.Sid)
	}
	return nil
}

// describe tells what there is now, and three commands that work when pasted.
func (a *App) describe(d demo) string {
	base := a.Where.Public
	laml := base + "/api/laml/2010-04-01/Accounts/" + d.project.ID + "/Recordings"
	var b strings.Builder
	row := func(name, value string) { fmt.Fprintf(&b, "  %-18s%s\n", name, value) }
	head := func(title string) { fmt.Fprintf(&b, "\n%s\n", title) }

	b.WriteString("A demo project was made, with ids and secrets of its own.\n")
	head("Project")
	row("id", d.project.ID)
	row("API key", d.key)
	head("Subscriber, who can sign in")
	row("e-mail", d.subscriber.Email)
	row("password", d.password)
	head("Addresses, beside the subscriber's /private/ada")
	row("a script", "/public/welcome")
	row("a room", "/public/workshop")
	head("OAuth clients")
	row("app in a browser", d.spa.ID)
	row("  sends back to", strings.Join(d.spa.RedirectURIs, "\n"+strings.Repeat(" ", 20)))
	row("backend", d.service.ID)
	row("  secret", d.secret)
	head("Recordings of synthesised speech")
	for i, sid := range d.sids {
		row(calls[i].name, laml+"/"+sid+".wav")
	}
	head("Where")
	for _, l := range a.links() {
		row(l.title, l.url)
	}
	if d.setup != "" {
		head("Operator: who opens this within a day is the first one, an owner")
		row("setup link", d.setup)
	}
	head("Try: mint a token for a subscriber, list the recordings, listen to one")
	fmt.Fprintf(&b, "\ncurl -s -u %s:%s -H 'Content-Type: application/json' -d '{\"reference\":\"%s\"}' %s/api/fabric/subscribers/tokens\n", d.project.ID, d.key, d.subscriber.Email, base)
	fmt.Fprintf(&b, "\ncurl -s -u %s:%s %s.json\n", d.project.ID, d.key, laml)
	fmt.Fprintf(&b, "\ncurl -s -o selvage-demo.wav %s/%s.wav\n", laml, d.sids[0])
	return b.String()
}
