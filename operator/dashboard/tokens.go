package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// tokenPages create, inspect and revoke tokens.
type tokenPages struct {
	*site
	Clients *idp.Provider
}

// tokenKinds are what can be made by hand, with what each is for.
var tokenKinds = []choice{
	{Value: "subscriber", Title: "Subscriber token",
		Why: "Somebody acts as a subscriber: calls, is called, sees all addresses."},
	{Value: "guest", Title: "Guest token", Why: "Whoever has it reaches a few addresses, and nothing else."},
	{Value: "invite", Title: "Invite token", Why: "Whoever has it reaches one address of a subscriber."},
	{Value: "embed", Title: "Embed key",
		Why: "Stands in a page that anybody may read, and gives guest tokens to one address until it is revoked."},
}

// A tokensPage is where tokens are made and looked at.
type tokensPage struct {
	list[embedRow]
	Kinds  []choice
	Found  *tokenInfo
	Faults []fault
}

type embedRow struct {
	fabric.EmbedKey
	Title   string
	Address string
	Status  status
}

// listTokens serves GET /dashboard/projects/{project}/tokens.
func (a *tokenPages) listTokens(v *visit) error { return a.tokensPage(v, http.StatusOK, nil, nil) }

func (a *tokenPages) tokensPage(v *visit, code int, found *tokenInfo, wrong []fault) error {
	keys, err := a.Fabric.EmbedKeys.List(v.r.Context(), v.project.ID, v.query())
	if err != nil {
		return err
	}
	paths, err := a.pathsOf(v, keys.Items)
	if err != nil {
		return err
	}
	rows := listOf(v, keys, func(k fabric.EmbedKey) embedRow {
		row := embedRowOf(k)
		row.Address = cmp.Or(paths[k.AddressID], k.AddressID)
		return row
	})
	return a.page(v, code, "Tokens", "tokens", tokensPage{rows, tokenKinds, found, wrong})
}

// pathsOf returns the paths of the addresses to which embed keys lead, by their ids.
func (a *tokenPages) pathsOf(v *visit, keys []fabric.EmbedKey) (map[string]string, error) {
	ids, paths := []string{}, make(map[string]string)
	for _, k := range keys {
		ids = append(ids, k.AddressID)
	}
	if len(ids) == 0 {
		return paths, nil
	}
	reaches := fabric.Token{Kind: fabric.SAT, ProjectID: v.project.ID}
	found, err := a.Fabric.Addresses.List(v.r.Context(), reaches, fabric.AddressFilter{IDs: ids},
		page.Query{Size: len(ids)})
	for _, one := range found.Items {
		paths[one.ID] = one.Path()
	}
	return paths, err
}

func embedRowOf(k fabric.EmbedKey) embedRow {
	row := embedRow{EmbedKey: k, Title: k.Name, Address: k.AddressID, Status: status{"good", "Good"}}
	if row.Title == "" {
		row.Title = k.Prefix + "…"
	}
	if !k.Revoked.IsZero() {
		row.Status = status{"bad", "Revoked"}
	}
	return row
}

// A tokenInfo is what a text turned out to be.
type tokenInfo struct {
	What   string
	Status status
	Facts  []tokenFact
	URL    string // of a page that has more; "" for none
	Token  string // goes back with the form that revokes it; "" where that form is elsewhere
}

type tokenFact struct{ Name, Text, URL string }

// trimToken reads a token or key as people paste it: with a header's name, in quotes.
func trimToken(text string) string {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "Authorization:"); ok {
		text = strings.TrimSpace(rest)
	}
	if rest, ok := strings.CutPrefix(text, "Bearer "); ok {
		text = strings.TrimSpace(rest)
	}
	return strings.Trim(text, `"'`)
}

// inspectToken serves POST /dashboard/projects/{project}/tokens/inspect: what a token or a
// key is, whose, and whether it is good. What is pasted is written nowhere.
func (a *tokenPages) inspectToken(v *visit) error {
	raw := trimToken(v.form.Get("token"))
	if raw == "" {
		return a.tokensPage(v, http.StatusUnprocessableEntity, nil, []fault{{"Paste a token or a key.", "f-token"}})
	}
	found, err := a.tokenInfo(v, raw)
	if err != nil {
		return err
	}
	if found == nil {
		return a.tokensPage(v, http.StatusUnprocessableEntity, nil, []fault{{unknownToken, "f-token"}})
	}
	return a.tokensPage(v, http.StatusOK, found, nil)
}

const unknownToken = "That is no token or key of this project: it is another’s, was changed on its way, or is a JWT that is over."

// tokenInfo tells what a secret text is; nil for what is none of the project's.
func (a *tokenPages) tokenInfo(v *visit, raw string) (*tokenInfo, error) {
	k, err := a.Fabric.APIKeys.FindLeaked(v.r.Context(), v.project.ID, raw)
	if err == nil {
		row := v.keyRow(k)
		return &tokenInfo{What: "an API key", Status: row.Status, URL: row.URL, Facts: []tokenFact{
			{"Name", row.Title, row.URL}, {"Scopes", row.Scopes, ""}, {"Last used", formatTime(k.LastUsed), ""},
		}}, nil
	}
	if !isMissing(err) {
		return nil, err
	}
	e, err := a.Fabric.EmbedKeys.Find(v.r.Context(), raw)
	if err == nil && e.ProjectID == v.project.ID {
		row, at := embedRowOf(e), e.AddressID
		if reached, err := a.Fabric.Addresses.Find(v.r.Context(), fabric.Token{Kind: fabric.SAT, ProjectID: e.ProjectID}, at); err == nil {
			at = reached.Path()
		}
		return &tokenInfo{What: "an embed key", Status: row.Status, Token: raw,
			Facts: []tokenFact{{"Name", row.Title, ""}, {"Address", at, ""}}}, nil
	}
	if err != nil && !isMissing(err) {
		return nil, err
	}
	t, ok, err := a.openToken(v, raw)
	if err != nil || !ok {
		return nil, err
	}
	return a.tokenFacts(v, t, raw)
}

// openToken opens a token of the project, of whatever kind, be it over or not.
func (a *tokenPages) openToken(v *visit, raw string) (t fabric.Token, ok bool, err error) {
	t, ok = a.Fabric.Tokens.Inspect(raw, fabric.SAT, fabric.Guest, fabric.Invite, fabric.Refresh, fabric.Service)
	if !ok {
		if t, _, err = a.Clients.Tokens.Inspect(v.r.Context(), raw); err != nil {
			if problem.First(err) != nil {
				err = nil
			}
			return t, false, err
		}
	}
	return t, t.ProjectID == v.project.ID, nil
}

// isMissing reports an error that says no more than that something is not there.
func isMissing(err error) bool {
	p := problem.First(err)
	return p != nil && (p.Kind == problem.NotFound || p.Kind == problem.Forbidden ||
		p.Kind == problem.Unauthenticated)
}

var tokenTitles = map[fabric.TokenKind]string{
	fabric.SAT: "a subscriber’s token", fabric.Guest: "a guest’s token", fabric.Invite: "an invite token",
	fabric.Refresh: "a refresh token",
	fabric.Service: "a token of a service", fabric.Access: "an access token (JWT)",
}

func (a *tokenPages) tokenFacts(v *visit, t fabric.Token, raw string) (*tokenInfo, error) {
	found := &tokenInfo{What: tokenTitles[t.Kind], Status: status{"good", "Good"}, Token: raw}
	if !v.now.Before(t.ExpiresAt) {
		found.Status, found.Token = status{"", "Expired"}, ""
	} else if err := a.Fabric.Tokens.Check(v.r.Context(), t); err != nil {
		if p := problem.First(err); p == nil || p.Kind == problem.Unavailable {
			return nil, err
		}
		found.Status, found.Token = status{"bad", "Revoked"}, ""
	}
	add := func(name, text, url string) {
		if text != "" {
			found.Facts = append(found.Facts, tokenFact{name, text, url})
		}
	}
	if err := a.whose(v, t, add); err != nil {
		return nil, err
	}
	if by, err := a.Operators.Find(v.r.Context(), t.KeyID); err == nil {
		add("Made by hand by", by.Title(), "")
	} else if !errors.Is(err, problem.NotFound) {
		return nil, err
	} else {
		key, err := a.Fabric.APIKeys.Find(v.r.Context(), v.project.ID, t.KeyID)
		if err != nil && !errors.Is(err, problem.NotFound) {
			return nil, err
		}
		if err == nil {
			add("Made with the API key", v.keyRow(key).Title, v.base()+"/keys/"+t.KeyID)
		}
	}
	add("Scopes", strings.Join(t.Scope, ", "), "")
	for _, id := range t.AddressIDs {
		reached, err := a.Fabric.Addresses.Find(v.r.Context(),
			fabric.Token{Kind: fabric.SAT, ProjectID: t.ProjectID}, id)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		if err == nil {
			id = reached.Path()
		}
		add("Reaches", id, "")
	}
	add("Bound to the key", t.Fingerprint, "")
	add("Issued", t.IssuedAt.UTC().Format(minute), "")
	add("Expires", t.ExpiresAt.UTC().Format(minute), "")
	return found, nil
}

// whose tells by name for whom, and for which app, a token is; by id whom there is no more.
func (a *tokenPages) whose(v *visit, t fabric.Token, add func(name, text, url string)) error {
	if t.SubscriberID != "" {
		s, err := a.Fabric.Subscribers.Find(v.r.Context(), v.project.ID, t.SubscriberID)
		switch {
		case err == nil:
			add("Subscriber", v.subscriberRow(s).Title, v.base()+"/subscribers/"+s.ID)
			add("Name", s.FullName(), "")
		case errors.Is(err, problem.NotFound):
			add("Subscriber", t.SubscriberID+", who is deleted", "")
		default:
			return err
		}
	}
	if t.ClientID == "" {
		return nil
	}
	c, err := a.Clients.Clients.Find(v.r.Context(), t.ClientID)
	if errors.Is(err, problem.NotFound) {
		add("OAuth client", t.ClientID+", which is deleted", "")
		return nil
	}
	if err == nil {
		add("OAuth client", v.clientRow(c).Title, v.clientRow(c).URL)
	}
	return err
}

// minute writes a time for people.
const minute = "2 Jan 2006, 15:04 UTC"

func formatTime(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.UTC().Format(minute)
}

// revokeToken serves POST /dashboard/projects/{project}/tokens/revoke: the token of a
// form, or an embed key by its id.
func (a *tokenPages) revokeToken(v *visit) error {
	ctx := v.r.Context()
	if id := v.form.Get("embed"); id != "" {
		if err := a.Fabric.EmbedKeys.Revoke(ctx, fabric.EmbedKey{ID: id, ProjectID: v.project.ID}); err != nil {
			return err
		}
		return v.redirect(v.base() + "/tokens?done=tokenrevoked")
	}
	raw := trimToken(v.form.Get("token"))
	e, err := a.Fabric.EmbedKeys.Find(ctx, raw)
	if err == nil && e.ProjectID == v.project.ID {
		err = a.Fabric.EmbedKeys.Revoke(ctx, e)
	} else if err == nil || isMissing(err) {
		t, ok, failed := a.openToken(v, raw)
		if failed != nil {
			return failed
		}
		if !ok {
			return a.tokensPage(v, http.StatusUnprocessableEntity, nil, []fault{{unknownToken, "f-token"}})
		}
		err = a.Fabric.Tokens.Revoke(ctx, t)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/tokens?done=tokenrevoked")
}
