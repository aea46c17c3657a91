package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// JoinPath is the path of the page on which guests join. The fragment of its URL contains the
// token, so that the token does not reach the server.
const JoinPath = "/join"

// tokenLifetimes are the lifetimes of a token that an operator can choose.
var tokenLifetimes = []choice{
	{Value: "", Title: "two hours"},
	{Value: "15m", Title: "15 minutes"},
	{Value: "24h", Title: "a day"},
	{Value: "168h", Title: "a week"},
	{Value: "720h", Title: "30 days"},
}

// A mintPage shows the form that creates a token, or the new token.
type mintPage struct {
	Base   string
	Action string
	Title  string
	About  string
	Button string
	Form   form
	New    string       // an unknown reference; issuing the token creates its subscriber
	Made   *mintedToken // nil until the token is created
}

// A mintedToken is a new token. It is shown only once.
type mintedToken struct {
	Token    string
	Refresh  string
	Link     string // URL at which a guest joins; "" if there is none
	Room     entity // the resource to which the link leads; empty if there are several
	Expires  time.Time
	Snippets []snippet
}

// mintPage returns the form for the kind of token in the path.
func (a *tokenPages) mintPage(v *visit) (p mintPage, err error) {
	what := v.r.PathValue("what")
	i := slices.IndexFunc(tokenKinds, func(c choice) bool { return c.Value == what })
	if i < 0 {
		return p, problem.NoSuch("page")
	}

	p = mintPage{
		Base:   v.base(),
		Action: v.base() + "/tokens/make/" + what,
		Title:  words.Textf("New %s", v.inSentence(tokenKinds[i].Title)),
		About:  tokenKinds[i].Why,
		Button: "Create token",
	}
	if what == "guest" && !a.NoCalls && v.r.URL.Query().Has("link") {
		p.Action += "?link"
		p.Title, p.Button = "New guest link", "Create link"
		p.About = "Anyone with the link can join from a browser until it expires, without an account."
	}
	value := func(name string) string {
		if v.form != nil {
			return v.form.Get(name)
		}
		return v.r.URL.Query().Get(name) // a link can fill in the form
	}

	p.Form.Inputs = v.tokenInputs(what, value)
	if err := a.suggest(v, p.Form.Inputs); err != nil {
		return mintPage{}, err
	}
	if what != "embed" { // an embed key does not expire
		lifetimes := selectChoices(tokenLifetimes, value("expires"))
		p.Form.Inputs = append(p.Form.Inputs,
			input{Kind: kindSelect, Name: "expires", Label: "Valid for", Options: lifetimes})
	}
	return p, nil
}

// tokenInputs returns the inputs for a kind of token, with the given values.
func (v *visit) tokenInputs(what string, value func(name string) string) []input {
	text := func(name, label, hint string, length int) input {
		return input{
			Kind:   kindText,
			Type:   "text",
			Name:   name,
			Label:  label,
			Hint:   hint,
			Length: length,
			Value:  value(name),
		}
	}
	address := text("address_id", "Address", "A path such as /public/lobby, a title or an id.", 255)
	address.Required = true

	switch what {
	case "subscriber":
		reference := text("reference", "Subscriber", "The email, or the reference that your backend uses. Type part "+
			"of it or of a name to choose.", 255)
		reference.Required, reference.SuggestURL = true, v.base()+"/subscribers/find"
		return []input{
			reference,
			text("application_id", "OAuth client", "The name or id of the app that the token is for, if any.", 255),
			text("fingerprint", "Bound to a key", "The SHA-256 thumbprint (RFC 7638) of a key that the user of the "+
				"token must prove to hold. Usually empty.", 43),
		}
	case "guest":
		return []input{{
			Kind:     kindArea,
			Name:     "allowed_addresses",
			Label:    "Addresses",
			Hint:     "Up to ten, one per line: paths such as /public/lobby, titles or ids.",
			Rows:     4,
			Required: true,
			Value:    value("allowed_addresses"),
		}}
	case "invite":
		return []input{address}
	}
	return []input{address, text("name", "Name", "Where the key is used, such as “contact page”.", 255)}
}

// newToken serves GET /dashboard/projects/{project}/tokens/make/{what}.
func (a *tokenPages) newToken(v *visit) error {
	p, err := a.mintPage(v)
	if err != nil {
		return err
	}
	return a.tokenForm(v, http.StatusOK, p)
}

// makeToken serves POST /dashboard/projects/{project}/tokens/make/{what}. The new token is
// shown only once.
func (a *tokenPages) makeToken(v *visit) error {
	p, err := a.mintPage(v)
	if err != nil {
		return err
	}

	isNew, err := a.isNewSubscriber(v)
	if err != nil {
		return err
	}
	if isNew {
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
	p.nameRoom()
	return a.tokenForm(v, http.StatusOK, p)
}

// tokenForm shows the form for a new token, or the new token.
func (a *tokenPages) tokenForm(v *visit, code int, p mintPage) error {
	return a.pageWith(v, templates.Options{Status: code, Connect: []string{"'self'"}}, p.Title, "token_make", p)
}

// isNewSubscriber reports whether the form requests a token for an unknown subscriber whose
// reference the operator has not confirmed. As in the API, issuing the token creates the
// subscriber. The confirmation prevents this if the reference was mistyped.
func (a *tokenPages) isNewSubscriber(v *visit) (bool, error) {
	if v.r.PathValue("what") != "subscriber" || v.form.Get("new") == v.form.Get("reference") {
		return false, nil
	}
	reference := strings.TrimSpace(v.form.Get("reference"))
	if a.Fabric.Tokens.CheckSubscriber(fabric.SubscriberTokenInput{Reference: reference}) != nil {
		return false, nil // issuing the token reports the error
	}
	_, err := a.Fabric.Subscribers.FindReferred(v.r.Context(), v.project.ID, reference)
	if errors.Is(err, problem.NotFound) {
		return true, nil
	}
	return false, err
}

// A mintedFor is the resource, subscriber or project for which a token was created.
type mintedFor struct{ kind, id string }

// mint creates the token that the form requests, and records it in the audit trail.
func (a *tokenPages) mint(v *visit) (mintedToken, error) {
	made := mintedToken{Expires: v.now.Add(fabric.TokenLifetime)}
	var end *int64
	if d, err := time.ParseDuration(v.form.Get("expires")); err == nil && d > 0 {
		made.Expires = v.now.Add(min(d, fabric.MaxLifetime-time.Minute))
		end = new(made.Expires.Unix())
	}

	switch v.r.PathValue("what") {
	case "embed":
		return a.mintEmbedKey(v)

	case "subscriber":
		tokens, err := a.mintSubscriberToken(v, end)
		if err != nil {
			return mintedToken{}, err
		}
		return a.minted(v, made, tokens, fabric.SAT, mintedFor{subscriberType, tokens.SubscriberID})

	case "invite":
		tokens, err := a.mintInvite(v, end)
		if err != nil {
			return mintedToken{}, err
		}
		return a.minted(v, made, tokens, fabric.Invite, mintedFor{subscriberType, tokens.SubscriberID})
	}

	addresses, err := a.guestAddresses(v)
	if err != nil {
		return mintedToken{}, err
	}
	return a.mintGuest(v, made, end, addresses)
}

// mintGuest creates a guest token for the addresses with the given ids, and records it in the audit
// trail.
func (a *tokenPages) mintGuest(
	v *visit, made mintedToken, end *int64, addresses []string,
) (mintedToken, error) {
	// Find the room first, so that an error leaves no token behind.
	room, err := a.roomOf(v, addresses)
	if err != nil {
		return mintedToken{}, err
	}
	tokens, err := a.Fabric.Tokens.IssueGuest(v.r.Context(), v.issuer(),
		fabric.GuestTokenInput{AllowedAddresses: addresses, ExpireAt: end})
	if err != nil {
		return mintedToken{}, err
	}

	if !a.NoCalls {
		fragment := url.Values{
			"token": {tokens.Access},
			"until": {strconv.FormatInt(made.Expires.Unix(), 10)},
		}
		made.Link = a.PublicURL + JoinPath + "#" + fragment.Encode()
	}
	if room.ID == "" {
		return a.minted(v, made, tokens, fabric.Guest, mintedFor{"project", v.project.ID})
	}
	made.Room = entity{Name: room.DisplayName, URL: v.thingURL(room.Type, room.ID)}
	return a.minted(v, made, tokens, fabric.Guest, mintedFor{room.Type, room.ID})
}

// minted completes a new token, and records it in the audit trail.
func (a *tokenPages) minted(
	v *visit, made mintedToken, tokens fabric.TokenPair, kind fabric.TokenKind, target mintedFor,
) (mintedToken, error) {
	made.Token = tokens.Access
	made.Refresh = tokens.Refresh
	made.Snippets = a.tokenSnippets(tokens.Access)
	return made, a.Fabric.Audit.NoteToken(v.r.Context(), v.project.ID, kind, target.kind, target.id)
}

// issuer returns the operator as the issuer of tokens, so that these tokens can be revoked together
// with the operator.
func (v *visit) issuer() fabric.Issuer {
	return fabric.Issuer{ProjectID: v.project.ID, KeyID: v.operator.ID}
}

// mintSubscriberToken creates a subscriber token, and the subscriber if it is new.
func (a *tokenPages) mintSubscriberToken(v *visit, end *int64) (fabric.TokenPair, error) {
	client, err := a.clientID(v, "application_id", plainText(v.form.Get("application_id")))
	if err != nil {
		return fabric.TokenPair{}, err
	}
	return a.Fabric.Tokens.IssueSubscriber(v.r.Context(), v.issuer(), fabric.SubscriberTokenInput{
		Reference:     strings.TrimSpace(v.form.Get("reference")),
		ApplicationID: client,
		Fingerprint:   strings.TrimSpace(v.form.Get("fingerprint")),
		ExpireAt:      end,
	})
}

// guestAddresses returns the ids of the addresses that the form for a guest token names.
func (a *tokenPages) guestAddresses(v *visit) (addresses []string, err error) {
	addresses = splitLines(v.form.Get("allowed_addresses"))
	for i := range min(len(addresses), fabric.MaxAllowed) { // IssueGuest rejects more, so look up no others
		addresses[i], err = a.addressID(v, "allowed_addresses", addresses[i])
		if err != nil {
			return nil, err
		}
	}
	return addresses, nil
}

// mintInvite creates an invite token for a subscriber's address.
func (a *tokenPages) mintInvite(v *visit, end *int64) (tokens fabric.TokenPair, err error) {
	id, err := a.addressID(v, "address_id", strings.TrimSpace(v.form.Get("address_id")))
	if err != nil {
		return tokens, err
	}
	inviter := fabric.Token{Kind: fabric.SAT, ProjectID: v.project.ID, KeyID: v.operator.ID}
	notSubscriber := problem.BadParam("address_id", "address_id must be the address of a subscriber of this project")
	address, err := a.Fabric.Addresses.Find(v.r.Context(), inviter, id)
	if isMissing(err) {
		return tokens, notSubscriber
	}
	if err != nil {
		return tokens, err
	}
	if address.Type != fabric.TypeSubscriber {
		return tokens, notSubscriber
	}

	inviter.SubscriberID = address.ResourceID
	token, err := a.Fabric.Tokens.IssueInvite(v.r.Context(), inviter,
		fabric.InviteInput{AddressID: address.ID, ExpiresAt: end})
	if err != nil {
		return tokens, err
	}
	return fabric.TokenPair{Access: token, SubscriberID: address.ResourceID}, nil
}

// mintEmbedKey creates an embed key. The audit trail records it together with the key's row.
func (a *tokenPages) mintEmbedKey(v *visit) (made mintedToken, err error) {
	id, err := a.addressID(v, "address_id", strings.TrimSpace(v.form.Get("address_id")))
	if err != nil {
		return made, err
	}
	name := strings.TrimSpace(v.form.Get("name"))
	_, token, err := a.Fabric.EmbedKeys.Create(v.r.Context(), v.project.ID, id, name)
	if err != nil {
		return made, err
	}
	return mintedToken{Token: token, Snippets: a.embedSnippets(token)}, nil
}
