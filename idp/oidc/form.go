package oidc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// Whatever a page posts to us carries something that no other page can know, beside the
// check of where it comes from (see sameOrigin): the id of its authorization request,
// which only the browser that began it may answer; on the account's own page the token of
// the login that it was shown to; and on pages without either that of the browser's mark.

var errForm = pageError(http.StatusForbidden, "error.form-other", "error.form-other-text")

// sign returns the token of forms of a kind, for one login or browser.
func (pg *pages) sign(kind, id string) string {
	key := pg.Ring.Derive(kind)
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(id))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// formToken is in each form of the account's page, for the login that it was shown to.
func (pg *pages) formToken(s idp.Login) string { return pg.sign("account form", s.ID) }

// pageToken is in the forms of other pages, for the browser that they are shown to.
func (pg *pages) pageToken(w http.ResponseWriter, r *http.Request) string {
	return pg.sign("page form", pg.cookies.Flow(w, r))
}

// pageForm reads a form that has a pageToken.
func (pg *pages) pageForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	form, err := postForm(w, r)
	if err != nil {
		return nil, err
	}
	mark := pg.cookies.FlowOf(r)
	if mark == "" || !sameToken(form, pg.sign("page form", mark)) {
		return nil, errForm
	}
	return form, nil
}

func sameToken(form url.Values, token string) bool {
	return hmac.Equal([]byte(form.Get("token")), []byte(token))
}

// requestForm reads a form that belongs to a suspended request, and the request.
func (pg *pages) requestForm(w http.ResponseWriter, r *http.Request) (url.Values, idp.AuthRequest, idp.Client, error) {
	form, err := postForm(w, r)
	if err != nil {
		return nil, idp.AuthRequest{}, idp.Client{}, err
	}
	if form.Get("id") == "" || pg.cookies.FlowOf(r) == "" {
		return nil, idp.AuthRequest{}, idp.Client{}, errForm
	}
	req, c, err := pg.Requests.Resume(r.Context(), form.Get("id"), pg.cookies.FlowOf(r))
	if errors.Is(err, problem.Forbidden) {
		err = errForm
	}
	learn(r, req, c)
	if errors.Is(err, problem.NotFound) {
		err = errGone
	}
	return form, req, c, err
}
