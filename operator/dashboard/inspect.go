package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/cnf"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
)

// A tokenInfo describes a token or key that was inspected.
type tokenInfo struct {
	What   string
	Status status
	Facts  []tokenFact
	URL    string // page with more details, or ""
	Token  string // the token, sent back by the form that revokes it; "" if this page cannot revoke it
}

type tokenFact struct{ Name, Text, URL string }

// trimToken returns a pasted token or key without a header name or quotes. For the link of a guest,
// it returns the token in the link.
func trimToken(text string) string {
	text = strings.TrimSpace(text)
	if _, fragment, ok := strings.Cut(text, JoinPath+"#"); ok {
		link, _ := url.ParseQuery(fragment) // an invalid part leaves the token empty
		return link.Get("token")
	}
	if rest, ok := strings.CutPrefix(text, "Authorization:"); ok {
		text = strings.TrimSpace(rest)
	}
	if rest, ok := strings.CutPrefix(text, "Bearer "); ok {
		text = strings.TrimSpace(rest)
	}
	return strings.Trim(text, `"'`)
}

// inspectToken serves POST /dashboard/projects/{project}/tokens/inspect. It describes a pasted
// token or key: its kind, its owner and whether it is valid. The token is not stored.
func (a *tokenPages) inspectToken(v *visit) error {
	raw := trimToken(v.form.Get("token"))
	if raw == "" {
		return a.showTokens(v, http.StatusUnprocessableEntity, nil, faultAt("f-token", "Paste a token or a key."))
	}
	found, err := a.inspect(v, raw)
	if err != nil {
		return err
	}
	if found == nil {
		return a.showTokens(v, http.StatusUnprocessableEntity, nil, faultAt("f-token", unknownToken))
	}
	return a.showTokens(v, http.StatusOK, found, nil)
}

const unknownToken = "This is not a token or key of this project. It belongs to another project, was altered, " +
	"or is an expired JWT."

// inspect describes a token or key, or returns nil if it does not belong to the project.
func (a *tokenPages) inspect(v *visit, raw string) (*tokenInfo, error) {
	k, err := a.Fabric.APIKeys.FindLeaked(v.r.Context(), v.project.ID, raw)
	if err == nil {
		row := v.keyRow(k)
		facts := []tokenFact{
			{Name: "Name", Text: row.Title, URL: row.URL},
			{Name: "Scopes", Text: row.Scopes},
			{Name: "Last used", Text: formatTime(v.words(), k.LastUsed)},
		}
		return &tokenInfo{What: "an API key", Status: row.Status, URL: row.URL, Facts: facts}, nil
	}
	if !isMissing(err) {
		return nil, err
	}

	e, err := a.Fabric.EmbedKeys.Find(v.r.Context(), raw)
	if err == nil && e.ProjectID == v.project.ID {
		path, err := a.addressPath(v, e.AddressID)
		if err != nil {
			return nil, err
		}
		row := embedRowOf(e)
		facts := []tokenFact{{Name: "Name", Text: row.Title}, {Name: "Address", Text: path}}
		return &tokenInfo{What: "an embed key", Status: row.Status, Token: raw, Facts: facts}, nil
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

// addressPath returns the path of a project's address, or its id if the address no longer exists.
func (a *tokenPages) addressPath(v *visit, id string) (string, error) {
	found, err := a.Fabric.Addresses.Find(v.r.Context(), anyCaller(v), id)
	if isMissing(err) {
		return id, nil
	}
	if err != nil {
		return "", err
	}
	return found.Path(), nil
}

// openToken reads a token of any kind. A JWT must be valid; other tokens may have expired. ok is
// false if the token cannot be read or does not belong to the project.
func (a *tokenPages) openToken(v *visit, raw string) (t fabric.Token, ok bool, err error) {
	t, ok = a.Fabric.Tokens.Inspect(raw, fabric.SAT, fabric.Guest, fabric.Invite, fabric.Refresh, fabric.Service)
	if !ok {
		t, _, err = a.Clients.Tokens.Inspect(v.r.Context(), raw)
		if isNoMatch(err) {
			return fabric.Token{}, false, nil
		}
		if err != nil {
			return fabric.Token{}, false, err
		}
	}
	return t, t.ProjectID == v.project.ID, nil
}

// isMissing reports whether err means that a token or key is unknown or not valid.
func isMissing(err error) bool {
	p := problem.First(err)
	return p != nil && (p.Kind == problem.NotFound || p.Kind == problem.Forbidden ||
		p.Kind == problem.Unauthenticated)
}

// tokenTitles describes the kinds of tokens.
var tokenTitles = map[fabric.TokenKind]string{
	fabric.SAT:     "a subscriber token",
	fabric.Guest:   "a guest token",
	fabric.Invite:  "an invite token",
	fabric.Refresh: "a refresh token",
	fabric.Service: "a service token",
	fabric.Access:  "an access token (JWT)",
}

// tokenFacts describes a token: its state, its owner, its creator and its permissions.
func (a *tokenPages) tokenFacts(v *visit, t fabric.Token, raw string) (*tokenInfo, error) {
	found := &tokenInfo{What: tokenTitles[t.Kind], Status: status{Kind: "good", Word: "Active"}, Token: raw}
	if !v.now.Before(t.ExpiresAt) {
		found.Status, found.Token = status{Word: "Expired"}, ""
	} else if err := a.Fabric.Tokens.Check(v.r.Context(), t); err != nil {
		if p := problem.First(err); p == nil || p.Kind == problem.Unavailable {
			return nil, err
		}
		found.Status, found.Token = status{Kind: "bad", Word: "Revoked"}, ""
	}

	if err := a.addOwner(v, t, found); err != nil {
		return nil, err
	}
	if err := a.addIssuer(v, t, found); err != nil {
		return nil, err
	}

	found.add("Scopes", strings.Join(t.Scope, ", "), "")
	for _, id := range t.AddressIDs {
		path, err := a.addressPath(v, id)
		if err != nil {
			return nil, err
		}
		found.add("Reaches", path, "")
	}

	if bound := cnf.ClaimOf(t.Binding); bound != nil {
		found.add("Bound to the key", bound.JKT, "")
		found.add("Bound to the certificate", bound.X5T, "")
	}

	found.add("Issued", v.words().Format(t.IssuedAt, minute), "")
	found.add("Expires", v.words().Format(t.ExpiresAt, minute), "")
	return found, nil
}

// add adds a fact, unless text is empty.
func (i *tokenInfo) add(name, text, url string) {
	if text != "" {
		i.Facts = append(i.Facts, tokenFact{Name: name, Text: text, URL: url})
	}
}

// addIssuer adds the operator or API key that created a token.
func (a *tokenPages) addIssuer(v *visit, t fabric.Token, to *tokenInfo) error {
	by, err := a.Operators.Find(v.r.Context(), t.KeyID)
	if err == nil {
		to.add("Created manually by", by.Title(), "")
		return nil
	}
	if !errors.Is(err, problem.NotFound) {
		return err
	}
	key, err := a.Fabric.APIKeys.Find(v.r.Context(), v.project.ID, t.KeyID)
	if err != nil {
		return problem.IgnoreNotFound(err)
	}
	to.add("Created with the API key", v.keyRow(key).Title, v.base()+"/keys/"+t.KeyID)
	return nil
}

// addOwner adds the names of a token's subscriber and OAuth client, or their ids if they were
// deleted.
func (a *tokenPages) addOwner(v *visit, t fabric.Token, to *tokenInfo) error {
	if t.SubscriberID != "" {
		s, err := a.Fabric.Subscribers.Find(v.r.Context(), v.project.ID, t.SubscriberID)
		switch {
		case err == nil:
			to.add("Subscriber", v.subscriberRow(s).Title, v.base()+"/subscribers/"+s.ID)
			to.add("Name", s.FullName(), "")
		case errors.Is(err, problem.NotFound):
			to.add("Subscriber", t.SubscriberID+" (deleted)", "")
		default:
			return err
		}
	}

	if t.ClientID == "" {
		return nil
	}
	c, err := a.Clients.Clients.Find(v.r.Context(), t.ClientID)
	if errors.Is(err, problem.NotFound) {
		to.add("OAuth client", t.ClientID+" (deleted)", "")
		return nil
	}
	if err != nil {
		return err
	}
	row := v.clientRow(c)
	to.add("OAuth client", row.Title, row.URL)
	return nil
}

// minute is the layout of displayed times, to the minute.
const minute = "2 Jan 2006, 15:04 UTC"

func formatTime(w *words.Words, at time.Time) string {
	if at.IsZero() {
		return w.Text("Never")
	}
	return w.Format(at, minute)
}
