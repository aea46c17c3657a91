package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

// shown returns the fields that a browser sends for an unedited form.
func (b browser) shown(page string) url.Values {
	b.Helper()
	return url.Values{"seen": {b.marks(page)}}
}

// marks returns the digests in the form on page.
func (b browser) marks(page string) string {
	b.Helper()
	return b.get(page).find(b, `name="seen" value="([^"]+)"`)
}

// TestFormsDoNotOverwrite shows that saving a form writes only the fields changed in it, and does
// not overwrite changes that another operator made in the meantime. If both changed a field, the
// form reports the conflict and keeps what was typed.
func TestFormsDoNotOverwrite(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	c, _, err := w.idp.Clients.Create(t.Context(),
		idp.Client{ProjectID: w.one.ID, Type: idp.Web, Name: "Shop",
			RedirectURIs: []string{"https://shop.example/cb"}})
	must(t, err)

	// Open the form.
	one := "/dashboard/projects/" + w.one.ID + "/clients/" + c.ID
	edit := b.shown(one + "/edit")
	for name, values := range map[string][]string{
		"name": {"Shop"}, "redirect_uri": {"https://shop.example/cb"}, "profile": {"default"},
		"scope": c.Scopes, "grant": c.Grants, "auth_method": {string(c.AuthMethod)},
		"access_token": {string(c.AccessToken)}, "id_token_alg": {string(c.IDTokenAlg)}, "pkce": {"required"},
		"acr": {""},
	} {
		edit[name] = values
	}

	// Another operator changes other fields; both changes are kept.
	must(t, w.idp.Clients.Change(t.Context(), c.ID, func(c *idp.Client) {
		c.RedirectURIs, c.FirstParty, c.Scopes = []string{"https://new.example/cb"}, true, []string{"openid"}
	}))

	edit.Set("name", "Market")
	b.post(one+"/edit", one+"/edit", edit).leadsTo(t, one+"?done=changed")
	after, err := w.idp.Clients.Find(t.Context(), c.ID)
	if err != nil || after.Name != "Market" || after.RedirectURIs[0] != "https://new.example/cb" ||
		!after.FirstParty || len(after.Scopes) != 1 {
		t.Errorf("after both changes it is %+v, %v", after, err)
	}

	// Now both have changed a field.
	edit.Set("name", "Fair")
	edit.Set("redirect_uri", "https://mine.example/cb")
	a := b.post(one+"/edit", one+"/edit", edit)
	for _, want := range []string{`id="f-redirect_uri-fault"`,
		"changed by somebody else since you opened this form, to “https://new.example/cb”", "https://mine.example/cb",
		`id="f-name-fault"`, "to “Market”"} {
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, want) {
			t.Errorf("a form that conflicts with another's change: %s, want %s in it: %s", a.Status, want,
				between(a.body, `id="faults"`, "</div>"))
		}
	}

	if after, err = w.idp.Clients.Find(t.Context(), c.ID); err != nil || after.Name != "Market" {
		t.Errorf("a refused form changed the client: %+v, %v", after, err)
	}

	// The form that reports the conflict can be saved again, which overwrites the other change.
	edit.Set("seen", a.find(t, `name="seen" value="([^"]+)"`))
	if strings.Contains(a.body, `name="first_party" value="yes" checked`) {
		edit.Set("first_party", "yes")
	}

	b.post(one+"/edit", one+"/edit", edit).leadsTo(t, one+"?done=changed")
	if after, err = w.idp.Clients.Find(t.Context(), c.ID); err != nil || after.Name != "Fair" ||
		after.RedirectURIs[0] != "https://mine.example/cb" || !after.FirstParty {
		t.Errorf("saved again it is %+v, %v", after, err)
	}
}

// TestOtherFormsDoNotOverwrite shows the same for the forms of subscribers and rules.
func TestOtherFormsDoNotOverwrite(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	mail, first := "ada@example.com", "Augusta"
	city, off := "DE", fabric.RegistrationOpen
	s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &mail})
	must(t, err)

	// Open both forms.
	one, rules := "/dashboard/projects/"+w.one.ID+"/subscribers/"+s.ID, "/dashboard/projects/"+w.one.ID+"/rules"
	edit, ruled := b.shown(one+"/edit"), b.shown(rules+"/edit")
	edit.Set("email", mail)

	// Another operator changes the subscriber and the rules.
	_, err = w.fabric.Subscribers.Update(t.Context(), w.one.ID, s.ID,
		fabric.SubscriberInput{Profile: fabric.Profile{FirstName: &first, Country: &city}})
	must(t, err)
	_, err = w.fabric.Projects.Update(t.Context(), w.one.ID, fabric.ProjectChange{Registration: &off})
	must(t, err)

	// Saving the forms keeps those changes.
	edit.Set("last_name", "King")
	b.post(one+"/edit", one+"/edit", edit).leadsTo(t, one+"?done=changed")
	s, err = w.fabric.Subscribers.Find(t.Context(), w.one.ID, s.ID)
	if err != nil || s.FirstName != first || s.Country != city || s.LastName != "King" {
		t.Errorf("after both changes the subscriber is %+v, %v", s, err)
	}

	for name, value := range map[string]string{"registration": "off", "require_factor": "no",
		"media_auth": "signed"} {
		ruled.Set(name, value)
	}
	b.post(rules+"/edit", rules+"/edit", ruled).leadsTo(t, rules+"?done=changed")
	now, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
	if err != nil || now.Registration != fabric.RegistrationOpen || now.MediaAuth != "signed" {
		t.Errorf("after both changes the rules are %+v, %v", now, err)
	}
}
