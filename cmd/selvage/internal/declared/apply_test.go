package declared_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/declared"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store/storetest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open returns an empty installation.
func open(t *testing.T) (*fabric.Fabric, *idp.Provider, *declared.Declarer) {
	t.Helper()
	dir := storetest.Dir(t)
	rows := storetest.Open(t, dir, nil)
	f := fabric.New(fabric.Config{
		Stores:      rows.Fabric(),
		Ring:        storetest.Ring(t, dir, rows, nil),
		Revocations: revocation.New(rows, nil),
	})
	p := idp.New(idp.Config{
		Store:  idp.Stores{Clients: rows, Registrations: rows, Upstreams: rows},
		Fabric: f,
	})
	d := declared.New(declared.Config{
		Fabric:  f,
		IDP:     p,
		Store:   rows,
		Suggest: func(string, []string) string { return "" },
	})
	return f, p, d
}

// TestApplyLeavesTheRest shows that applying a plan keeps changes that were made after the plan was
// computed, except changes to members that the file names.
func TestApplyLeavesTheRest(t *testing.T) {
	ctx := t.Context()
	f, p, d := open(t)
	project, err := f.Projects.Create(ctx, "Acme")
	must(t, err)
	app, _, err := p.Clients.Create(ctx, idp.Client{
		ProjectID:    project.ID,
		Name:         "App",
		Type:         idp.SPA,
		RedirectURIs: []string{"https://a.example/cb", "https://taken.example/cb"},
	})
	must(t, err)

	file, err := d.Parse("acme.yaml", []byte(
		"projects: [{name: Acme, color: '#a03060', clients: [{name: App, brand_color: '#a03060', scopes: [openid]}]}]"))
	must(t, err)
	steps, err := d.Plan(ctx, file, false)
	must(t, err)

	// Another operator changes other members before the steps are applied.
	must(t, p.Clients.Change(ctx, app.ID, func(c *idp.Client) { c.RedirectURIs = c.RedirectURIs[:1] }))
	signed := fabric.MediaAuths[1]
	_, err = f.Projects.Update(ctx, project.ID, fabric.ProjectChange{MediaAuth: &signed})
	must(t, err)

	must(t, d.Apply(ctx, steps, func(declared.Done) error { return nil }))
	app, err = p.Clients.Find(ctx, app.ID)
	must(t, err)
	if len(app.RedirectURIs) != 1 {
		t.Errorf("the client has the redirect URIs %q, want 1", app.RedirectURIs)
	}
	if app.BrandColor != "#a03060" {
		t.Errorf("the client has the color %q, want #a03060", app.BrandColor)
	}
	if len(app.Scopes) != 1 {
		t.Errorf("the client has the scopes %q, want 1", app.Scopes)
	}

	project, err = f.Projects.Find(ctx, project.ID)
	must(t, err)
	if project.MediaAuth != signed {
		t.Errorf("the project has the media_auth %q, want %q", project.MediaAuth, signed)
	}
	if project.Color != "#a03060" {
		t.Errorf("the project has the color %q, want #a03060", project.Color)
	}
}

// TestApplyIgnoresRegistered shows that a self-registered client stays unchanged if it has the name
// of a client in the file. The file creates its own client.
func TestApplyIgnoresRegistered(t *testing.T) {
	ctx := t.Context()
	f, p, d := open(t)
	project, err := f.Projects.Create(ctx, "Acme")
	must(t, err)
	policy := fabric.ClientsOpen
	_, err = f.Projects.Update(ctx, project.ID, fabric.ProjectChange{ClientRegistration: &policy})
	must(t, err)
	admitted, err := p.Registrations.Admit(ctx, "", "192.0.2.1")
	must(t, err)
	stranger, err := p.Registrations.Register(ctx, admitted, idp.ClientMetadata{
		Name:         "App",
		RedirectURIs: []string{"https://evil.example/cb"},
	})
	must(t, err)

	const text = "projects: [{name: Acme, clients: [{name: App, type: spa, first_party: true, " +
		"redirect_uris: ['https://app.example/cb']}]}]"
	file, err := d.Parse("acme.yaml", []byte(text))
	must(t, err)
	steps, err := d.Plan(ctx, file, true)
	must(t, err)
	must(t, d.Apply(ctx, steps, func(declared.Done) error { return nil }))

	found, err := p.Clients.List(ctx, project.ID, page.Query{Size: 10})
	must(t, err)
	if len(found.Items) != 2 {
		t.Fatalf("the clients are %+v, want 2", found.Items)
	}
	oldest, newest := found.Items[0], found.Items[1]
	if oldest.ID != stranger.ID {
		t.Errorf("the oldest client is %s, want the self-registered one, %s", oldest.ID, stranger.ID)
	}
	if oldest.FirstParty {
		t.Error("the self-registered client became a first-party client")
	}
	if !newest.FirstParty {
		t.Errorf("the client of the file is %+v, want a first-party client", newest)
	}
}

// TestApplyDuplicates shows that a file whose lists contain a name twice needs no more steps once it
// has been applied.
func TestApplyDuplicates(t *testing.T) {
	f, _, d := open(t)
	_, err := f.Projects.Create(t.Context(), "Acme")
	must(t, err)
	const text = "projects: [{name: Acme, keys: [{name: CI, scopes: [voice, calling, chat]}]," +
		" webhooks: [{url: 'https://a.example/', events: [call.created, call.ended, call.created]}]}]"
	file, err := d.Parse("acme.yaml", []byte(text))
	must(t, err)

	for _, want := range []int{2, 0} {
		steps, err := d.Plan(t.Context(), file, false)
		must(t, err)
		if len(steps) != want {
			t.Errorf("the plan has the steps %+v, want %d", steps, want)
		}
		must(t, d.Apply(t.Context(), steps, func(declared.Done) error { return nil }))
	}
}

// TestPlanNull shows that null is not read as the text "null".
func TestPlanNull(t *testing.T) {
	_, _, d := open(t)
	for _, null := range []string{"null", "~", "Null"} {
		for _, text := range []string{
			"projects: [{name: " + null + "}]",
			"projects: [{name: Acme, subscribers: [{email: ada@example.com, last_name: " + null + "}]}]",
			"projects: [{name: Acme, keys: [{name: CI, scopes: [voice, " + null + "]}]}]",
		} {
			file, err := d.Parse("acme.yaml", []byte(text))
			must(t, err)
			_, err = d.Plan(t.Context(), file, false)
			var fault *declared.Fault
			if !errors.As(err, &fault) || !strings.Contains(fault.Message, "value") {
				t.Errorf("Plan of %s = %v, want an error about a missing value", text, err)
			}
		}
	}
}

// TestPlanTwoEntries shows that a file with two entries for the same thing is refused, even if only
// one of them has the id. Otherwise, each apply would undo what the previous one changed.
func TestPlanTwoEntries(t *testing.T) {
	d, ci := openWithKey(t)
	const byName = "{name: CI, scopes: [chat]}"
	for _, byID := range []string{
		"{id: " + ci + ", name: CI, scopes: [voice]}",
		"{id: " + ci + ", scopes: [voice]}",
	} {
		for _, entries := range []string{byName + ", " + byID, byID + ", " + byName} {
			_, err := planKeys(t, d, entries)
			if err == nil || !strings.Contains(err.Error(), "duplicate key") {
				t.Errorf("Plan of %s = %v, want an error about a duplicate key", entries, err)
			}
		}
	}
}

// TestPlanRenameAndCreate shows that a file can rename a thing by its id and give the old name to a
// new one. Afterwards, nothing is left to do.
func TestPlanRenameAndCreate(t *testing.T) {
	const fresh = "{name: CI, scopes: [chat]}"
	for _, renamedFirst := range []bool{true, false} {
		d, ci := openWithKey(t)
		renamed := "{id: " + ci + ", name: Build}"
		entries := fresh + ", " + renamed
		if renamedFirst {
			entries = renamed + ", " + fresh
		}

		steps, err := planKeys(t, d, entries)
		must(t, err)
		if len(steps) != 2 {
			t.Fatalf("the plan of %s has the steps %+v, want 2", entries, steps)
		}
		if s := steps[0]; s.Action != declared.Update || s.ID != ci || s.Name != "Build" {
			t.Errorf("the first step of %s is %+v, want the new name of the key %s", entries, s, ci)
		}
		if s := steps[1]; s.Action != declared.Create || s.Name != "CI" {
			t.Errorf("the second step of %s is %+v, want a new key", entries, s)
		}

		must(t, d.Apply(t.Context(), steps, func(declared.Done) error { return nil }))
		steps, err = planKeys(t, d, entries)
		must(t, err)
		if len(steps) != 0 {
			t.Errorf("after %s was applied, the plan has the steps %+v, want none", entries, steps)
		}
	}
}

// TestPlanRenameResource is like TestPlanRenameAndCreate, but for resources.
func TestPlanRenameResource(t *testing.T) {
	_, _, d := open(t)
	plan := func(resources string) []declared.Step {
		t.Helper()
		file, err := d.Parse("acme.yaml", []byte("projects: [{name: Acme, resources: ["+resources+"]}]"))
		must(t, err)
		steps, err := d.Plan(t.Context(), file, false)
		must(t, err)
		return steps
	}
	const lobby = "{kind: video_room, name: lobby}"
	id := ""
	steps := plan(lobby)
	must(t, d.Apply(t.Context(), steps, func(s declared.Done) error {
		id = s.ID
		return nil
	}))

	entries := lobby + ", {kind: video_room, id: " + id + ", name: hall}"
	steps = plan(entries)
	if len(steps) != 2 {
		t.Fatalf("the plan has the steps %+v, want 2", steps)
	}
	if s := steps[0]; s.Action != declared.Update || s.ID != id || s.Name != "hall" {
		t.Errorf("the first step is %+v, want the new name of the room %s", s, id)
	}
	if s := steps[1]; s.Action != declared.Create || s.Name != "lobby" {
		t.Errorf("the second step is %+v, want a new room", s)
	}
	must(t, d.Apply(t.Context(), steps, func(declared.Done) error { return nil }))
	if steps := plan(entries); len(steps) != 0 {
		t.Errorf("after the file was applied, the plan has the steps %+v, want none", steps)
	}
}

// TestPlanRenameProject is like TestPlanRenameAndCreate, but for projects. It also shows that two entries
// for the same project are refused.
func TestPlanRenameProject(t *testing.T) {
	f, _, d := open(t)
	old, err := f.Projects.Create(t.Context(), "Acme")
	must(t, err)
	plan := func(projects string) ([]declared.Step, error) {
		t.Helper()
		file, err := d.Parse("acme.yaml", []byte("projects: ["+projects+"]"))
		must(t, err)
		return d.Plan(t.Context(), file, false)
	}
	_, err = plan("{name: Acme}, {id: " + old.ID + ", color: '#a03060'}")
	if err == nil || !strings.Contains(err.Error(), "has the same name") {
		t.Errorf("Plan of two entries for a project = %v, want an error about the name", err)
	}

	entries := "{name: Acme, color: '#a03060'}, {id: " + old.ID + ", name: Acme Labs}"
	steps, err := plan(entries)
	must(t, err)
	if len(steps) != 2 {
		t.Fatalf("the plan has the steps %+v, want 2", steps)
	}
	if s := steps[0]; s.Action != declared.Update || s.ID != old.ID || s.Name != "Acme Labs" {
		t.Errorf("the first step is %+v, want the new name of the project %s", s, old.ID)
	}
	if s := steps[1]; s.Action != declared.Create || s.Name != "Acme" {
		t.Errorf("the second step is %+v, want a new project", s)
	}
	must(t, d.Apply(t.Context(), steps, func(declared.Done) error { return nil }))
	steps, err = plan(entries)
	must(t, err)
	if len(steps) != 0 {
		t.Errorf("after the file was applied, the plan has the steps %+v, want none", steps)
	}
}

// unmarked is a store in which nothing can be marked as declared.
type unmarked struct{ declared.Store }

func (unmarked) MarkDeclared(context.Context, string, string) error { return errors.New("no space") }

// TestPlanTransport shows that a plan is refused if it requires encryption at a gateway but names another
// transport than TLS, and that the gateway uses TLS if its entry names no transport.
func TestPlanTransport(t *testing.T) {
	ctx := t.Context()
	f, _, d := open(t)
	plan := func(more string) ([]declared.Step, error) {
		t.Helper()
		file, err := d.Parse("acme.yaml", []byte("projects: [{name: Acme, resources: [{kind: sip_gateway, "+
			"name: Trunk, uri: trunk@sip.example.org, ciphers: [], codecs: [PCMU], "+more+"}]}]"))
		must(t, err)
		return d.Plan(ctx, file, false)
	}
	const want = "transport must be tls if encryption is required"
	_, err := plan("encryption: required, transport: tcp")
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a plan for a new gateway with TCP returned %v, want %q", err, want)
	}

	for _, more := range []string{"encryption: optional, transport: udp", "encryption: required"} {
		steps, err := plan(more)
		must(t, err)
		must(t, d.Apply(ctx, steps, func(declared.Done) error { return nil }))
		if steps, err = plan(more); err != nil || len(steps) > 0 {
			t.Errorf("after the apply with %s, a plan returned %v, %v, want no steps", more, steps, err)
		}
		_, err = plan("encryption: required, transport: udp")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a plan for a gateway with UDP returned %v, want %q", err, want)
		}
	}
	projects, err := page.Every(ctx, f.Projects.List)
	must(t, err)
	kind := f.Resources.Kinds().ByType(fabric.GatewayKind)
	found, err := f.Resources.List(ctx, projects[0].ID, kind, page.Query{Size: 2})
	must(t, err)
	if got := found.Items[0].Fields.Text("transport"); got != "tls" {
		t.Errorf("the gateway has the transport %s, want tls", got)
	}
}

// TestApplyTellsSecrets shows that Apply passes on the secret of a new key, even if the step then fails.
func TestApplyTellsSecrets(t *testing.T) {
	dir := storetest.Dir(t)
	rows := storetest.Open(t, dir, nil)
	f := fabric.New(fabric.Config{Stores: rows.Fabric(), Ring: storetest.Ring(t, dir, rows, nil)})
	d := declared.New(declared.Config{
		Fabric:  f,
		IDP:     idp.New(idp.Config{Store: idp.Stores{Clients: rows, Upstreams: rows}, Fabric: f}),
		Store:   unmarked{rows},
		Suggest: func(string, []string) string { return "" },
	})
	_, err := f.Projects.Create(t.Context(), "Acme")
	must(t, err)
	steps, err := planKeys(t, d, "{name: CI, scopes: [voice]}")
	must(t, err)

	secret := ""
	err = d.Apply(t.Context(), steps, func(s declared.Done) error {
		secret = s.Secret
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("Apply = %v, want the error of the store", err)
	}
	if !strings.HasPrefix(secret, "PT") {
		t.Errorf("Apply passed on the secret %q, want that of the key", secret)
	}
}

// openWithKey returns an installation whose project Acme has the key CI, and the id of this key.
func openWithKey(t *testing.T) (d *declared.Declarer, id string) {
	t.Helper()
	f, _, d := open(t)
	project, err := f.Projects.Create(t.Context(), "Acme")
	must(t, err)
	name := "CI"
	in := fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}
	k, _, err := f.APIKeys.Create(t.Context(), project.ID, in, nil)
	must(t, err)
	return d, k.ID
}

// planKeys plans a file in which the project Acme has the given keys.
func planKeys(t *testing.T, d *declared.Declarer, entries string) ([]declared.Step, error) {
	t.Helper()
	file, err := d.Parse("acme.yaml", []byte("projects: [{name: Acme, keys: ["+entries+"]}]"))
	must(t, err)
	return d.Plan(t.Context(), file, false)
}
