package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// keyPages serves the pages that list, show, create, rotate and revoke API keys.
type keyPages struct {
	*site
}

// A keyRow is a row in the list of API keys.
type keyRow struct {
	fabric.APIKey
	Title, URL, Scopes string
	Status             status
}

func (v *visit) keyRow(k fabric.APIKey) keyRow {
	scopes := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		scopes[i] = string(s)
	}

	row := keyRow{
		APIKey: k,
		Title:  cmp.Or(k.Name, k.Prefix+"…"),
		URL:    v.base() + "/keys/" + k.ID,
		Scopes: strings.Join(scopes, ", "),
		Status: status{Kind: "good", Word: "Active"},
	}
	switch {
	case !k.Revoked.IsZero():
		row.Status = status{Kind: "bad", Word: "Revoked"}
	case !k.Expires.IsZero() && !v.now.Before(k.Expires):
		row.Status = status{Word: "Expired"}
	case k.OldHash != "" && v.now.Before(k.OldUntil):
		row.Status = status{Kind: "warn", Word: "Two secrets"}
	}
	return row
}

// keyStates are the options of the filter by state.
var keyStates = []choice{
	{Value: string(fabric.KeyUsable), Title: "Active"},
	{Value: string(fabric.KeyEnded), Title: "Revoked or expired"},
}

// keyFinder returns the search form of the list of keys, and the filter that it describes.
func (v *visit) keyFinder() (finder, fabric.APIKeyFilter) {
	state := v.choiceFilter("state", "State", "Any state", keyStates)
	search := v.finder("Name or id", "backend", "", state).exportable(v)
	return search, fabric.APIKeyFilter{Text: search.Query, State: fabric.KeyState(search.chosen("state"))}
}

// listKeys serves GET /dashboard/projects/{project}/keys.
func (a *keyPages) listKeys(v *visit) error {
	f, filter := v.keyFinder()
	found, err := a.Fabric.APIKeys.Search(v.r.Context(), v.project.ID, filter, v.query())
	if err != nil {
		return err
	}
	return a.page(v, http.StatusOK, "API keys", "keys", foundList[keyRow]{listOf(v, found, v.keyRow), f})
}

// exportKeys serves GET /dashboard/projects/{project}/keys/export.
func (a *keyPages) exportKeys(v *visit) error {
	_, filter := v.keyFinder()
	list := func(q page.Query) (page.Page[fabric.APIKey], error) {
		return a.Fabric.APIKeys.Search(v.r.Context(), v.project.ID, filter, q)
	}
	header := []string{"id", "name", "prefix", "scopes", "created", "last_used", "expires", "revoked"}
	return writeCSV(a.site, v, "keys", header, list, func(k fabric.APIKey) []string {
		return []string{k.ID, k.Name, k.Prefix, v.keyRow(k).Scopes, csvTime(k.Created), csvTime(k.LastUsed),
			csvTime(k.Expires), csvTime(k.Revoked)}
	})
}

// bulkKeys serves POST /dashboard/projects/{project}/keys/bulk, which revokes the selected keys.
func (a *keyPages) bulkKeys(v *visit) error {
	ctx := v.r.Context()
	return a.bulk(v, bulkPage{
		Title:  "Revoke API keys",
		Button: "Revoke keys",
		Danger: true,
		Text: "Requests with these keys, and all tokens created with them, are refused within a second. " +
			"This cannot be undone.",
		Action:  v.base() + "/keys/bulk",
		Back:    v.base() + "/keys",
		changed: "keysrevoked",
		nameOf: func(id string) (string, error) {
			k, err := a.Fabric.APIKeys.Find(ctx, v.project.ID, id)
			if err != nil {
				return "", err
			}
			return v.keyRow(k).Title, nil
		},
		change: func(id string) error { return a.Fabric.APIKeys.Revoke(ctx, v.project.ID, id) },
	})
}

// A keyForm is the form that creates an API key.
type keyForm struct {
	Base, Name, Expires string
	Scopes              []choice
	Faults              faults
}

// effectiveScopes are the scopes that the form offers. The API also accepts other scopes, which
// have no effect.
var effectiveScopes = []fabric.Scope{fabric.Voice, fabric.Messaging, fabric.Fax, fabric.Video, fabric.Management}

// newKey serves GET /dashboard/projects/{project}/keys/new.
func (a *keyPages) newKey(v *visit) error {
	return a.keyForm(v, http.StatusOK, keyForm{}, []string{string(fabric.Voice)})
}

func (a *keyPages) keyForm(v *visit, status int, p keyForm, chosen []string) error {
	p.Base = v.base()
	for _, s := range effectiveScopes {
		p.Scopes = append(p.Scopes,
			choice{Value: string(s), Title: string(s), Chosen: slices.Contains(chosen, string(s))})
	}
	return a.page(v, status, "New API key", "key_new", p)
}

// keyLifetimes are the lifetimes that an operator can choose for a key; 0 means unlimited.
var keyLifetimes = map[string]time.Duration{
	"": 0, "30d": 30 * 24 * time.Hour, "90d": 90 * 24 * time.Hour, "365d": 365 * 24 * time.Hour,
}

// createKey serves POST /dashboard/projects/{project}/keys. The secret is shown only once.
func (a *keyPages) createKey(v *visit) error {
	p := keyForm{Name: v.form.Get("name"), Expires: v.form.Get("expires")}
	in := fabric.APIKeyInput{Name: &p.Name}
	for _, name := range v.form["scope"] {
		if s, ok := fabric.ParseScope(name); ok {
			in.Scopes = append(in.Scopes, s)
		}
	}

	life, ok := keyLifetimes[p.Expires]
	if !ok {
		return problem.BadParam("expires", "unknown lifetime")
	}
	if life > 0 {
		end := v.now.Add(life)
		in.Expires = &end
	}

	k, secret, err := a.Fabric.APIKeys.Create(v.r.Context(), v.project.ID, in, nil)
	if wrong, ok := describeFaults(err, "name", "scopes", "expires"); ok {
		p.Faults = wrong
		return a.keyForm(v, http.StatusUnprocessableEntity, p, v.form["scope"])
	}
	if err != nil {
		return err
	}
	v.notice = words.Textf("API key %s created.", v.quote(v.keyRow(k).Title))
	return a.showKeyPage(v, k, secret, nil)
}

// showKey serves GET /dashboard/projects/{project}/keys/{id}.
func (a *keyPages) showKey(v *visit) error {
	k, err := a.Fabric.APIKeys.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return a.showKeyPage(v, k, "", nil)
}

// A keyPage shows one API key.
type keyPage struct {
	Key        keyRow
	Base       string
	Secret     string // set if the secret was just created, because it is shown only once
	Seen       string // digest of the current secret
	Snippets   []snippet
	TwoSecrets bool
	MayChange  bool
	Faults     faults
}

// showKeyPage shows the page of a key. If secret is not "", the page shows it.
func (a *keyPages) showKeyPage(v *visit, k fabric.APIKey, secret string, wrong faults) error {
	row := v.keyRow(k)
	curl := fmt.Sprintf("curl -u %s:%s %s/api/laml/2010-04-01/Accounts/%s/Recordings.json",
		v.project.ID, secret, a.PublicURL, v.project.ID)
	p := keyPage{
		Key:        row,
		Base:       v.base(),
		Secret:     secret,
		Seen:       secretMark(k.Hash),
		Snippets:   []snippet{{Title: "curl", Text: curl}},
		TwoSecrets: row.Status.Word == "Two secrets",
		MayChange:  v.mayIn(operator.Write) && k.Revoked.IsZero(),
		Faults:     wrong,
	}

	code := http.StatusOK
	if wrong != nil {
		code = http.StatusUnprocessableEntity
	}
	return a.page(v, code, row.Title, "key", p)
}

// overlaps maps the options of a rotation to how long the old secret remains valid.
var overlaps = map[string]time.Duration{"day": fabric.UsualOverlap, "week": 7 * 24 * time.Hour, "now": 0}

// rotateKey serves POST /dashboard/projects/{project}/keys/{id}/rotate.
func (a *keyPages) rotateKey(v *visit) error {
	overlap, ok := overlaps[v.form.Get("overlap")]
	if !ok {
		return problem.BadParam("overlap", "unknown overlap")
	}
	k, err := a.Fabric.APIKeys.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if !v.sawSecret(k.Hash) {
		return a.rotatedKey(v)
	}
	k, secret, err := a.Fabric.APIKeys.RotateSeen(v.r.Context(), k, overlap, nil)
	if errors.Is(err, problem.Conflict) {
		return a.rotatedKey(v)
	}
	if err != nil {
		return err
	}
	v.notice = words.Textf("%s has a new secret. Give it to the backend that uses the key.",
		v.quote(v.keyRow(k).Title))
	return a.showKeyPage(v, k, secret, nil)
}

// rotatedKey shows a key whose secret has been replaced since its page was shown.
func (a *keyPages) rotatedKey(v *visit) error {
	k, err := a.Fabric.APIKeys.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return a.showKeyPage(v, k, "", faultAt("", rotatedMeanwhile))
}

// endOldKeySecret serves POST /dashboard/projects/{project}/keys/{id}/old-secret. If the form was on
// the page that shows the new secret, the response shows this secret again.
func (a *keyPages) endOldKeySecret(v *visit) error {
	k, err := a.Fabric.APIKeys.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	secret := v.form.Get("secret")
	if !k.HasSecret(secret) {
		secret = ""
	}
	if !v.sawSecret(k.Hash) {
		return a.showKeyPage(v, k, secret, faultAt("", rotatedMeanwhile))
	}
	ended, err := a.Fabric.APIKeys.EndOldSecret(v.r.Context(), k)
	if p := problem.First(err); p != nil && p.Kind == problem.Conflict {
		return a.showKeyPage(v, k, secret, faultAt("", sentence(p.Message)))
	}
	if err != nil {
		return err
	}
	if secret == "" {
		return v.redirect(v.keyRow(k).URL + "?done=keyended")
	}
	v.notice = strings.ReplaceAll(v.say(notices["keyended"]), "{this}", v.quote(v.keyRow(k).Title))
	return a.showKeyPage(v, ended, secret, nil)
}

// revokeKey serves POST /dashboard/projects/{project}/keys/{id}/revoke.
func (a *keyPages) revokeKey(v *visit) error {
	k, err := a.Fabric.APIKeys.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if v.form.Get("confirm") != v.keyRow(k).Title {
		return a.showKeyPage(v, k, "", faultAt("confirm", "The name does not match. Nothing was revoked."))
	}
	if err := a.Fabric.APIKeys.Revoke(v.r.Context(), v.project.ID, k.ID); err != nil {
		return err
	}
	a.rememberDeleted(v, v.keyRow(k).Title)
	return v.redirect(v.base() + "/keys?done=revoked")
}
