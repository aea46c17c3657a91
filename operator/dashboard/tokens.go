package dashboard

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
)

// tokenPages serves the pages that create, inspect and revoke tokens.
type tokenPages struct {
	*site
	Clients *idp.Provider
}

// tokenKinds lists the kinds of tokens that operators can create, each with its purpose.
var tokenKinds = []choice{
	{Value: "subscriber", Title: "Subscriber token",
		Why: "Acts as a subscriber: makes and receives calls, and sees all addresses."},
	{Value: "guest", Title: "Guest token", Why: "Reaches the addresses you choose, and nothing else."},
	{Value: "invite", Title: "Invite token", Why: "Reaches one address of a subscriber."},
	{Value: "embed", Title: "Embed key",
		Why: "For public web pages: issues guest tokens for one address until it is revoked."},
}

// A tokensPage lists embed keys, and the kinds of tokens that can be created. It may also show an
// inspected token.
type tokensPage struct {
	list[embedRow]
	Kinds  []choice
	Found  *tokenInfo
	Faults faults
}

type embedRow struct {
	fabric.EmbedKey
	Title   string
	Address string
	Status  status
}

// listTokens serves GET /dashboard/projects/{project}/tokens.
func (a *tokenPages) listTokens(v *visit) error { return a.showTokens(v, http.StatusOK, nil, nil) }

// showTokens responds with the page. found is the inspected token, or nil.
func (a *tokenPages) showTokens(v *visit, code int, found *tokenInfo, wrong faults) error {
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
		row.Address = cmp.Or(paths[k.AddressID], row.Address)
		return row
	})
	return a.page(v, code, "Tokens", "tokens", tokensPage{
		list:   rows,
		Kinds:  tokenKinds,
		Found:  found,
		Faults: wrong,
	})
}

// pathsOf returns the paths of the addresses of embed keys, by the ids of the addresses.
func (a *tokenPages) pathsOf(v *visit, keys []fabric.EmbedKey) (map[string]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var ids []string
	for _, k := range keys {
		ids = append(ids, k.AddressID)
	}

	reaches := fabric.Token{Kind: fabric.SAT, ProjectID: v.project.ID}
	found, err := a.Fabric.Addresses.List(v.r.Context(), reaches, fabric.AddressFilter{IDs: ids},
		page.Query{Size: len(ids)})
	if err != nil {
		return nil, err
	}
	paths := make(map[string]string)
	for _, one := range found.Items {
		paths[one.ID] = one.Path()
	}
	return paths, nil
}

func embedRowOf(k fabric.EmbedKey) embedRow {
	row := embedRow{
		EmbedKey: k,
		Title:    k.Name,
		Address:  k.AddressID,
		Status:   status{Kind: "good", Word: "Active"},
	}
	if row.Title == "" {
		row.Title = k.Prefix + "…"
	}
	if !k.Revoked.IsZero() {
		row.Status = status{Kind: "bad", Word: "Revoked"}
	}
	return row
}

// revokeToken serves POST /dashboard/projects/{project}/tokens/revoke. It revokes the token in the
// form, or the embed key with the id in the form.
func (a *tokenPages) revokeToken(v *visit) error {
	if id := v.form.Get("embed"); id != "" {
		k := fabric.EmbedKey{ID: id, ProjectID: v.project.ID}
		if err := a.Fabric.EmbedKeys.Revoke(v.r.Context(), k); err != nil {
			return err
		}
		return v.redirect(v.base() + "/tokens?done=tokenrevoked")
	}

	err := a.revoke(v, trimToken(v.form.Get("token")))
	if errors.Is(err, errUnknownToken) {
		return a.showTokens(v, http.StatusUnprocessableEntity, nil, faultAt("f-token", unknownToken))
	}
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/tokens?done=tokenrevoked")
}

var errUnknownToken = errors.New("not a token of the project")

// revoke revokes a token or embed key of the project.
func (a *tokenPages) revoke(v *visit, raw string) error {
	e, err := a.Fabric.EmbedKeys.Find(v.r.Context(), raw)
	if err == nil && e.ProjectID == v.project.ID {
		return a.Fabric.EmbedKeys.Revoke(v.r.Context(), e)
	}
	if err != nil && !isMissing(err) {
		return err
	}

	t, ok, err := a.openToken(v, raw)
	if err != nil {
		return err
	}
	if !ok {
		return errUnknownToken
	}
	return a.Fabric.Tokens.Revoke(v.r.Context(), t)
}
