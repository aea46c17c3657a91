package declared_test

import (
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/declared"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/store/storetest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestApplyLeavesTheRest shows that applying a plan keeps changes that were made after the plan was
// computed, except changes to members that the file names.
func TestApplyLeavesTheRest(t *testing.T) {
	ctx, dir := t.Context(), storetest.Dir(t)
	rows := storetest.Open(t, dir, nil)
	f := fabric.New(fabric.Config{Stores: rows.Fabric(), Ring: storetest.Ring(t, dir, rows, nil)})
	p := idp.New(idp.Config{Store: idp.Stores{Clients: rows, Upstreams: rows}, Fabric: f})
	d := declared.New(declared.Config{
		Fabric:  f,
		IDP:     p,
		Store:   rows,
		Suggest: func(string, []string) string { return "" },
	})

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
	if len(app.RedirectURIs) != 1 || app.BrandColor != "#a03060" || len(app.Scopes) != 1 {
		t.Errorf("the client has the redirect URIs %q, the color %q and the scopes %q, want 1, #a03060 and 1",
			app.RedirectURIs, app.BrandColor, app.Scopes)
	}

	project, err = f.Projects.Find(ctx, project.ID)
	must(t, err)
	if project.MediaAuth != signed || project.Color != "#a03060" {
		t.Errorf("the project has the media_auth %q and the color %q, want signed and #a03060",
			project.MediaAuth, project.Color)
	}
}

// TestApplyIgnoresRegistered shows that a self-registered client stays unchanged if it has the name
// of a client in the file. The file creates its own client.
func TestApplyIgnoresRegistered(t *testing.T) {
	ctx, dir := t.Context(), storetest.Dir(t)
	rows := storetest.Open(t, dir, nil)
	f := fabric.New(fabric.Config{Stores: rows.Fabric(), Ring: storetest.Ring(t, dir, rows, nil)})
	p := idp.New(idp.Config{Store: idp.Stores{Clients: rows, Registrations: rows, Upstreams: rows}, Fabric: f})
	d := declared.New(declared.Config{
		Fabric:  f,
		IDP:     p,
		Store:   rows,
		Suggest: func(string, []string) string { return "" },
	})

	project, err := f.Projects.Create(ctx, "Acme")
	must(t, err)
	open := fabric.ClientsOpen
	_, err = f.Projects.Update(ctx, project.ID, fabric.ProjectChange{ClientRegistration: &open})
	must(t, err)
	by, err := p.Registrations.Admit(ctx, "", "192.0.2.1")
	must(t, err)
	stranger, err := p.Registrations.Register(ctx, by,
		idp.ClientMetadata{Name: "App", RedirectURIs: []string{"https://evil.example/cb"}})
	must(t, err)

	file, err := d.Parse("acme.yaml", []byte("projects: [{name: Acme, clients: [{name: App, type: spa, "+
		"first_party: true, redirect_uris: ['https://app.example/cb']}]}]"))
	must(t, err)
	steps, err := d.Plan(ctx, file, true)
	must(t, err)
	must(t, d.Apply(ctx, steps, func(declared.Done) error { return nil }))

	found, err := p.Clients.List(ctx, project.ID, page.Query{Size: 10})
	must(t, err)
	if len(found.Items) != 2 || found.Items[0].ID != stranger.ID || found.Items[0].FirstParty ||
		!found.Items[1].FirstParty {
		t.Errorf("the clients are %+v, want the stranger unchanged and a new one", found.Items)
	}
}
