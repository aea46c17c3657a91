package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/uuid7"
	"github.com/selvage/selvage/recordings"
)

// speech holds the media of the demo's recordings; see NOTICE.
//
//go:embed welcome.wav workshop.wav
var speech embed.FS

// A seed holds everything that was created for a demo, including the secrets.
type seed struct {
	project    fabric.Project
	key        string
	subscriber fabric.Subscriber
	password   string
	spa        idp.Client
	service    idp.Client
	secret     string
	sids       []string
	setup      string // link for the first operator; "" if there is an operator
}

// seed creates the project and everything in it. It writes unfinishedFile first, so that if this start is
// interrupted, however early, the next start finds the project.
func (d *Demo) seed(ctx context.Context) (s seed, err error) {
	id := uuid7.At(time.Now())
	if err := datadir.Replace(d.file(unfinishedFile), []byte(id), 0o600); err != nil {
		return s, err
	}
	s.project, err = d.Fabric.Projects.CreateAs(ctx, id, "Demo")
	if err != nil {
		return s, err
	}

	name := "demo"
	scopes := []fabric.Scope{fabric.Voice, fabric.Messaging, fabric.Fax, fabric.Video}
	in := fabric.APIKeyInput{Name: &name, Scopes: scopes}
	_, s.key, err = d.Fabric.APIKeys.Create(ctx, s.project.ID, in, nil)
	if err != nil {
		return s, err
	}

	steps := []func(context.Context, *seed) error{
		d.seedSubscriber,
		d.seedClients,
		d.seedResources,
		d.seedRecordings,
	}
	for _, step := range steps {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// seedSubscriber creates a subscriber with a password.
func (d *Demo) seedSubscriber(ctx context.Context, s *seed) (err error) {
	email, first, last := "ada@example.com", "Ada", "Example"
	s.password = strings.ToLower(rand.Text()[:16])
	s.subscriber, err = d.Fabric.Subscribers.Create(ctx, s.project.ID, fabric.SubscriberInput{
		Email:    &email,
		Password: &s.password,
		Profile:  fabric.Profile{FirstName: &first, LastName: &last},
	})
	return err
}

// seedClients creates a client for a browser app and a client for a backend. The redirect URIs of
// the browser app are the usual addresses of development servers on this machine.
func (d *Demo) seedClients(ctx context.Context, s *seed) (err error) {
	s.spa, _, err = d.IDP.Clients.Create(ctx, idp.Client{
		ProjectID:  s.project.ID,
		Name:       "Demo app",
		Type:       idp.SPA,
		FirstParty: true,
		RedirectURIs: []string{
			"http://localhost:3000/callback",
			"http://localhost:5173/callback",
			d.Where.Public + Path,
		},
		LogoutURIs: []string{
			"http://localhost:3000/",
			"http://localhost:5173/",
			d.Where.Public + Path,
		},
		Scopes: []string{"openid", "profile", "email", "offline_access", string(fabric.Voice)},
	})
	if err != nil {
		return err
	}

	s.service, s.secret, err = d.IDP.Clients.Create(ctx, idp.Client{
		ProjectID: s.project.ID,
		Name:      "Demo backend",
		Type:      idp.Service,
		Scopes:    []string{string(fabric.Voice)},
	})
	return err
}

// welcomeScript is the resource at /public/welcome.
const welcomeScript = `{"display_name": "Welcome", "contents": {"version": "1.0.0", "sections":
	{"main": ["answer", {"play": {"url": "say:Welcome"}}, "hangup"]}}}`

// seedResources creates the resources of the recorded calls: a script at /public/welcome and a room at
// /public/workshop. It also creates a room at /public/lobby, which developers can try.
func (d *Demo) seedResources(ctx context.Context, s *seed) error {
	resources := []struct{ kind, members string }{
		{"swml_script", welcomeScript},
		{"video_room", `{"name": "workshop", "display_name": "Workshop"}`},
		{"video_room", `{"name": "lobby", "display_name": "Lobby"}`},
	}
	for _, r := range resources {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(r.members), &members); err != nil {
			return fmt.Errorf("reading the demo's %s: %w", r.kind, err)
		}
		kind := d.Fabric.Resources.Kinds().ByType(r.kind)
		if _, err := d.Fabric.Resources.Create(ctx, s.project.ID, kind, members); err != nil {
			return err
		}
	}
	return nil
}

// calls lists the recorded calls.
var calls = []struct{ name, from, to, direction string }{
	{"welcome", "/public/welcome", "/private/ada", "inbound"},
	{"workshop", "/private/ada", "/public/workshop", "outbound"},
}

// seedRecordings stores the recordings of the calls.
func (d *Demo) seedRecordings(ctx context.Context, s *seed) error {
	for _, call := range calls {
		wav, err := speech.ReadFile(call.name + ".wav")
		if err != nil {
			return err
		}

		about := recordings.Description{
			Metadata: recordings.Metadata{
				CallSid:   uuid.NewString(),
				From:      call.from,
				To:        call.to,
				Direction: call.direction,
			},
			SubscriberID: s.subscriber.ID,
		}
		r, _, err := d.Recordings.Ingest(ctx, recordings.Upload{
			ProjectID: s.project.ID,
			Body:      bytes.NewReader(wav),
			Describe:  func() (recordings.Description, error) { return about, nil },
		})
		if err != nil {
			return err
		}
		s.sids = append(s.sids, r.Sid)
	}
	return nil
}

// describe formats everything that was created. It adds three commands that can be pasted into a shell.
func (d *Demo) describe(s seed) string {
	base := d.Where.Public
	laml := base + "/api/laml/2010-04-01/Accounts/" + s.project.ID + "/Recordings"
	var b strings.Builder
	row := func(name, value string) { fmt.Fprintf(&b, "  %-18s%s\n", name, value) }
	head := func(title string) { fmt.Fprintf(&b, "\n%s\n", title) }

	b.WriteString("Created a demo project with random ids and secrets.\n")
	head("Project")
	row("id", s.project.ID)
	row("API key", s.key)
	head("Subscriber for signing in")
	row("email", s.subscriber.Email)
	row("password", s.password)
	head("Addresses, in addition to /private/ada of the subscriber")
	row("a script", "/public/welcome")
	row("a room", "/public/workshop")

	head("OAuth clients")
	row("browser app", s.spa.ID)
	row("  redirect URIs", strings.Join(s.spa.RedirectURIs, "\n"+strings.Repeat(" ", 20)))
	row("backend", s.service.ID)
	row("  secret", s.secret)
	head("Recordings of synthesized speech")
	for i, sid := range s.sids {
		row(calls[i].name, laml+"/"+sid+".wav")
	}

	head("Links")
	for _, l := range d.Links() {
		row(l.Title, l.URL)
	}

	if s.setup != "" {
		head("Operator: open this link within a day to become the first one, an owner")
		row("setup link", s.setup)
	}

	login := "-u " + s.project.ID + ":" + s.key
	head("Try it: create a token for a subscriber, list the recordings, download one")
	fmt.Fprintf(&b, "\ncurl -s %s -H 'Content-Type: application/json' -d '{\"reference\":\"%s\"}' "+
		"%s/api/fabric/subscribers/tokens\n", login, s.subscriber.Email, base)
	fmt.Fprintf(&b, "\ncurl -s %s %s.json\n", login, laml)
	fmt.Fprintf(&b, "\ncurl -s -o selvage-demo.wav %s/%s.wav\n", laml, s.sids[0])
	return b.String()
}
