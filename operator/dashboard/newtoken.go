package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

// tokenLifetimes are how long a token may be made to be good.
var tokenLifetimes = []choice{{Value: "", Title: "two hours"}, {Value: "15m", Title: "15 minutes"},
	{Value: "24h", Title: "a day"}, {Value: "168h", Title: "a week"}, {Value: "720h", Title: "30 days"}}

// A mintPage makes a token, or shows one this once.
type mintPage struct {
	Base, Action, Title, About string
	Form                       form
	New                        string // of whom nobody has heard: making the token makes a subscriber
	Made                       *mintedToken
}

type mintedToken struct {
	Token, Refresh string
	Expires        time.Time
	Snippets       []snippet
}

// mintPage returns the form of the path's kind of token.
func (a *tokenPages) mintPage(v *visit) (p mintPage, err error) {
	what := v.r.PathValue("what")
	i := slices.IndexFunc(tokenKinds, func(c choice) bool { return c.Value == what })
	if i < 0 {
		return p, problem.NoSuch("page")
	}
	p = mintPage{Base: v.base(), Action: v.base() + "/tokens/make/" + what,
		Title: "New " + lower(tokenKinds[i].Title), About: tokenKinds[i].Why}
	value := func(name string) string {
		if v.form != nil {
			return v.form.Get(name)
		}
		return v.r.URL.Query().Get(name) // of a link that fills the form
	}
	address := input{Kind: "text", Type: "text", Name: "address_id", Label: "Address",
		Hint: "Such as /public/lobby, or its id.", Required: true, Length: 255, Value: value("address_id")}
	switch what {
	case "subscriber":
		p.Form.Inputs = []input{
			{Kind: "text", Type: "text", Name: "reference", Label: "Subscriber",
				Hint: "Their e-mail, or the reference by which a backend calls them. Type a part of it or of a name to choose.", Required: true, Length: 255, Value: value("reference"), Finds: v.base() + "/subscribers/find"},
			{Kind: "text", Type: "text", Name: "application_id", Label: "OAuth client",
				Hint: "The id of the app that the token is for, if it is for one.", Length: 64,
				Value: value("application_id")},
			{Kind: "text", Type: "text", Name: "fingerprint", Label: "Bound to a key",
				Hint: "The SHA-256 thumbprint of a key that whoever uses the token must prove (RFC 7638); empty for none, as is usual.", Length: 43, Value: value("fingerprint")},
		}
	case "guest":
		p.Form.Inputs = []input{{Kind: "area", Name: "allowed_addresses", Label: "Addresses",
			Hint: "Up to ten, one a line: such as /public/lobby, or their ids.", Rows: 4, Required: true,
			Value: value("allowed_addresses")}}
	case "invite":
		p.Form.Inputs = []input{address}
	case "embed":
		p.Form.Inputs = []input{address, {Kind: "text", Type: "text", Name: "name", Label: "Name",
			Hint: "Where it stands, such as “contact page”.", Length: 255, Value: value("name")}}
	}
	if err := a.suggest(v, p.Form.Inputs); err != nil || what == "embed" {
		return p, err
	}
	lives := slices.Clone(tokenLifetimes)
	for i := range lives {
		lives[i].Chosen = lives[i].Value == value("expires")
	}
	p.Form.Inputs = append(p.Form.Inputs, input{Kind: "select", Name: "expires", Label: "Good for", Options: lives})
	return p, nil
}

// newToken serves GET /dashboard/projects/{project}/tokens/make/{what}.
func (a *tokenPages) newToken(v *visit) error {
	p, err := a.mintPage(v)
	if err != nil {
		return err
	}
	return a.tokenForm(v, http.StatusOK, p)
}

// makeToken serves POST /dashboard/projects/{project}/tokens/make/{what}. What it makes is
// shown this once.
func (a *tokenPages) makeToken(v *visit) error {
	p, err := a.mintPage(v)
	if err != nil {
		return err
	}
	if isNew, err := a.isNewSubscriber(v); err != nil {
		return err
	} else if isNew {
		p.New = v.form.Get("reference")
		return a.tokenForm(v, http.StatusUnprocessableEntity, p)
	}
	made, err := a.mint(v)
	if err != nil {
		if !p.Form.blame(err) {
			return err
		}
		return a.tokenForm(v, http.StatusUnprocessableEntity, p)
	}
	p.Made = &made
	return a.tokenForm(v, http.StatusOK, p)
}

func (a *tokenPages) tokenForm(v *visit, code int, p mintPage) error {
	return a.pageWith(v, templates.Options{Status: code, Connect: []string{"'self'"}}, p.Title, "token_make", p)
}

// isNewSubscriber reports a subscriber's token for whom there is not yet, and who was not said to be
// new: one is made, as the API does, but not of a slip of the pen.
func (a *tokenPages) isNewSubscriber(v *visit) (bool, error) {
	reference := strings.TrimSpace(v.form.Get("reference"))
	if v.r.PathValue("what") != "subscriber" || v.form.Get("new") == v.form.Get("reference") ||
		a.Fabric.Tokens.CheckSubscriber(fabric.SubscriberTokenInput{Reference: reference}) != nil {
		return false, nil
	}
	_, err := a.Fabric.Subscribers.FindReferred(v.r.Context(), v.project.ID, reference)
	if errors.Is(err, problem.NotFound) {
		return true, nil
	}
	return false, err
}

// mint makes what the form asks for, and has the trail say so.
func (a *tokenPages) mint(v *visit) (made mintedToken, err error) {
	ctx, by := v.r.Context(), fabric.Issuer{ProjectID: v.project.ID,
		KeyID: v.operator.ID} // what it makes can be ended with it
	made.Expires = v.now.Add(fabric.TokenLifetime)
	var end *int64
	if d, err := time.ParseDuration(v.form.Get("expires")); err == nil && d > 0 {
		made.Expires = v.now.Add(min(d, fabric.MaxLifetime-time.Minute))
		at := made.Expires.Unix()
		end = &at
	}
	address, err := a.addressID(v, "address_id", strings.TrimSpace(v.form.Get("address_id")))
	if err != nil {
		return made, err
	}
	var tokens fabric.TokenPair
	kind, targetKind, target := fabric.Guest, "project", v.project.ID
	switch v.r.PathValue("what") {
	case "subscriber":
		tokens, err = a.Fabric.Tokens.IssueSubscriber(ctx, by, fabric.SubscriberTokenInput{
			Reference:     strings.TrimSpace(v.form.Get("reference")),
			ApplicationID: strings.TrimSpace(v.form.Get("application_id")),
			Fingerprint:   strings.TrimSpace(v.form.Get("fingerprint")), ExpireAt: end,
		})
		kind, targetKind, target = fabric.SAT, "subscriber", tokens.SubscriberID
		made.Snippets = a.tokenSnippets(tokens.Access)
	case "guest":
		reached := lines(v.form.Get("allowed_addresses"))
		for i, one := range reached {
			if i == fabric.MaxAllowed { // too many, as the rules say; no more are looked up
				break
			}
			if reached[i], err = a.addressID(v, "allowed_addresses", one); err != nil {
				return made, err
			}
		}
		tokens, err = a.Fabric.Tokens.IssueGuest(ctx, by, fabric.GuestTokenInput{AllowedAddresses: reached, ExpireAt: end})
		made.Snippets = a.tokenSnippets(tokens.Access)
	case "invite":
		all := fabric.Token{Kind: fabric.SAT, ProjectID: v.project.ID, KeyID: v.operator.ID}
		var of fabric.Address
		if of, err = a.Fabric.Addresses.Find(ctx, all, address); err != nil && isMissing(err) || err == nil &&
			of.Type != fabric.TypeSubscriber {
			err = problem.BadParam("address_id", "address_id must be that of a subscriber's address of this project")
		}
		if err == nil {
			all.SubscriberID = of.ResourceID
			tokens.Access, err = a.Fabric.Tokens.IssueInvite(ctx, all, fabric.InviteInput{AddressID: of.ID, ExpiresAt: end})
			kind, targetKind, target = fabric.Invite, "subscriber", of.ResourceID
			made.Snippets = a.tokenSnippets(tokens.Access)
		}
	case "embed":
		_, made.Token, err = a.Fabric.EmbedKeys.Create(
			ctx, v.project.ID, address, strings.TrimSpace(v.form.Get("name")))
		made.Expires, made.Snippets = time.Time{}, a.embedSnippets(made.Token)
		return made, err // its making is noted with its row
	}
	if err == nil {
		err = a.Fabric.Audit.NoteToken(ctx, v.project.ID, kind, targetKind, target)
	}
	made.Token, made.Refresh = tokens.Access, tokens.Refresh
	return made, err
}

// tokenSnippets use a token.
func (a *tokenPages) tokenSnippets(token string) []snippet {
	return []snippet{
		{"JavaScript", fmt.Sprintf("import { SignalWire } from \"@signalwire/js\"; // 3.27 to 3.30\n\nconst client = await SignalWire({\n  token: \"%s\",\n});\nconst { addresses } = await client.address.getAddresses();", token)},
		{"curl", fmt.Sprintf("curl -H 'Authorization: Bearer %s' \\\n  %s/api/fabric/addresses", token, a.PublicURL)},
	}
}

// embedSnippets use an embed key.
func (a *tokenPages) embedSnippets(key string) []snippet {
	return []snippet{
		{"curl", fmt.Sprintf("# a guest token, for whoever asks\ncurl -H 'Content-Type: application/json' -d '{\"token\":\"%s\"}' \\\n  %s/api/fabric/embeds/tokens", key, a.PublicURL)},
		{"JavaScript", fmt.Sprintf("const answer = await fetch(\"%s/api/fabric/embeds/tokens\", {\n  method: \"POST\",\n  headers: { \"Content-Type\": \"application/json\" },\n  body: JSON.stringify({ token: \"%s\" }),\n});\nconst { token } = await answer.json();", a.PublicURL, key)},
	}
}
