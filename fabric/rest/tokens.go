package rest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

type subscriberTokenRequest struct {
	Reference     string   `json:"reference"`
	ExpireAt      *seconds `json:"expire_at"`
	ApplicationID string   `json:"application_id"`
	Password      string   `json:"password"`
	Fingerprint   string   `json:"fingerprint"`
	Scope         words    `json:"scope"`
	Ch            string   `json:"ch"`
	FirstName     *string  `json:"first_name"`
	LastName      *string  `json:"last_name"`
	DisplayName   *string  `json:"display_name"`
	JobTitle      *string  `json:"job_title"`
	TimeZone      *string  `json:"time_zone"`
	Country       *string  `json:"country"`
	Region        *string  `json:"region"`
	CompanyName   *string  `json:"company_name"`
}

func (in subscriberTokenRequest) input() fabric.SubscriberTokenInput {
	return fabric.SubscriberTokenInput{
		Reference:     in.Reference,
		ExpireAt:      (*int64)(in.ExpireAt),
		ApplicationID: in.ApplicationID,
		Password:      in.Password,
		Fingerprint:   in.Fingerprint,
		Scope:         in.Scope,
		Ch:            in.Ch,
		Profile: fabric.Profile{
			FirstName:   in.FirstName,
			LastName:    in.LastName,
			DisplayName: in.DisplayName,
			JobTitle:    in.JobTitle,
			TimeZone:    in.TimeZone,
			Country:     in.Country,
			Region:      in.Region,
			CompanyName: in.CompanyName,
		},
	}
}

// seconds is a number of seconds, such as a Unix time. It is sent as a number or, in forms, as a
// string of digits.
type seconds int64

// UnmarshalJSON reads 1700000000 or "1700000000".
func (s *seconds) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if len(text) > 2 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	*s = seconds(n)
	return err
}

// words is a list of words, sent as an array of strings or as one string with spaces between the
// words.
type words []string

// UnmarshalJSON reads "a b" or ["a", "b"].
func (w *words) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*w = strings.Fields(text)
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(w))
}

type subscriberTokenResponse struct {
	SubscriberID string `json:"subscriber_id"`
	Token        string `json:"token"`
	RefreshToken string `json:"refresh_token"`
}

type tokenResponse struct {
	Token        string `json:"token"`
	RefreshToken string `json:"refresh_token,omitempty"`
}

func showTokens(t fabric.TokenPair) tokenResponse { return tokenResponse{t.Access, t.Refresh} }

func showToken(access string) tokenResponse { return tokenResponse{Token: access} }

// A tokenRequest contains the embed key to use, or the token to revoke.
type tokenRequest struct {
	Token string `json:"token"`
}

// tokenAPI issues, refreshes and revokes tokens.
type tokenAPI struct {
	tokens *fabric.Tokens
	by     *credentials
}

func (a tokenAPI) routes() []route {
	return []route{
		{"POST", "/api/fabric/embeds/tokens", a.createForEmbed},
		{"POST", "/api/fabric/guests/tokens", a.by.projectOrSAT(created(a.createForGuest, showTokens))},
		{"POST", "/api/fabric/subscriber/invites", a.by.bearer(created(a.createInvite, showToken), fabric.SAT)},
		{"POST", "/api/fabric/subscribers/tokens", a.by.project(respondOK(a.createForSubscriber, same))},
		{"POST", "/api/fabric/subscribers/tokens/refresh", a.by.project(created(a.refresh, showTokens))},
		{"POST", "/api/fabric/tokens/revoke", a.by.project(noContent(a.revoke))},
		{"GET", ofSubscriber + "/tokens", a.by.project(respondPage(a.listFamilies, showFamily))},
		{"DELETE", ofSubscriber + "/tokens/{id}", a.by.project(noContent(a.revokeFamily))},
	}
}

// createForSubscriber serves POST /api/fabric/subscribers/tokens. Changing the password of an
// existing subscriber needs Management.
func (a tokenAPI) createForSubscriber(r *http.Request, by fabric.Issuer) (body subscriberTokenResponse, err error) {
	in, err := web.Decode[subscriberTokenRequest](r)
	if err != nil {
		return body, joinFaults(err, a.tokens.CheckSubscriber(in.input()))
	}
	tokens, err := a.tokens.IssueSubscriber(r.Context(), by, in.input())
	if err != nil {
		return body, a.by.refused(r, by, err)
	}
	return subscriberTokenResponse{
		SubscriberID: tokens.SubscriberID,
		Token:        tokens.Access,
		RefreshToken: tokens.Refresh,
	}, nil
}

// refresh serves POST /api/fabric/subscribers/tokens/refresh.
func (a tokenAPI) refresh(r *http.Request, by fabric.Issuer) (tokens fabric.TokenPair, err error) {
	in, err := web.Decode[struct {
		RefreshToken string `json:"refresh_token"`
	}](r)
	if err != nil {
		return tokens, err
	}
	return a.tokens.Refresh(r.Context(), by, in.RefreshToken)
}

type guestTokenRequest struct {
	AllowedAddresses []string `json:"allowed_addresses"`
	ExpireAt         *seconds `json:"expire_at"`
	Ch               string   `json:"ch"`
	Region           *string  `json:"region"`
}

func (in guestTokenRequest) input() fabric.GuestTokenInput {
	return fabric.GuestTokenInput{
		AllowedAddresses: in.AllowedAddresses,
		ExpireAt:         (*int64)(in.ExpireAt),
		Ch:               in.Ch,
		Region:           in.Region,
	}
}

// createForGuest serves POST /api/fabric/guests/tokens.
func (a tokenAPI) createForGuest(r *http.Request, by fabric.Issuer) (tokens fabric.TokenPair, err error) {
	in, err := web.Decode[guestTokenRequest](r)
	if err != nil {
		return tokens, joinFaults(err, a.tokens.CheckGuest(in.input()))
	}
	return a.tokens.IssueGuest(r.Context(), by, in.input())
}

type inviteRequest struct {
	AddressID string   `json:"address_id"`
	ExpiresAt *seconds `json:"expires_at"` // other requests use expire_at
}

func (in inviteRequest) input() fabric.InviteInput {
	return fabric.InviteInput{AddressID: in.AddressID, ExpiresAt: (*int64)(in.ExpiresAt)}
}

// createInvite serves POST /api/fabric/subscriber/invites.
func (a tokenAPI) createInvite(r *http.Request, sat fabric.Token) (token string, err error) {
	in, err := web.Decode[inviteRequest](r)
	if err != nil {
		return "", joinFaults(err, a.tokens.CheckInvite(in.input()))
	}
	return a.tokens.IssueInvite(r.Context(), sat, in.input())
}

// createForEmbed serves POST /api/fabric/embeds/tokens. It requires only the embed key in the body,
// and no other credentials.
func (a tokenAPI) createForEmbed(w http.ResponseWriter, r *http.Request) error {
	in, err := web.Decode[tokenRequest](r)
	if err != nil {
		return err
	}
	token, err := a.tokens.IssueEmbed(r.Context(), in.Token)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, showToken(token))
}

// revoke serves POST /api/fabric/tokens/revoke.
func (a tokenAPI) revoke(r *http.Request, by fabric.Issuer) error {
	in, err := web.Decode[tokenRequest](r)
	if err != nil {
		return err
	}
	return a.tokens.RevokeRaw(r.Context(), by.ProjectID, in.Token)
}

// A familyResponse is a family of refresh tokens in responses.
type familyResponse struct {
	ID          string  `json:"id"`
	Type        string  `json:"type"`
	ClientID    *string `json:"client_id"`
	CreatedAt   *string `json:"created_at"`
	RefreshedAt *string `json:"refreshed_at"`
	Refreshes   int64   `json:"refreshes"`
	ExpiresAt   string  `json:"expires_at"`
	Revoked     bool    `json:"revoked"`
}

// showFamily converts a family of refresh tokens for a response.
func showFamily(f fabric.Family) familyResponse {
	body := familyResponse{
		ID:          f.ID,
		Type:        "refresh",
		CreatedAt:   isoOrNull(f.Created),
		RefreshedAt: isoOrNull(f.Used),
		Refreshes:   f.Refreshes,
		ExpiresAt:   iso(f.Expires),
		Revoked:     f.Revoked,
	}
	if f.ClientID != "" {
		body.ClientID = &f.ClientID
	}
	return body
}

// listFamilies serves GET /api/fabric/resources/subscribers/{subscriber}/tokens.
func (a tokenAPI) listFamilies(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[fabric.Family], error) {
	return a.tokens.ListFamilies(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
}

// revokeFamily serves DELETE /api/fabric/resources/subscribers/{subscriber}/tokens/{id}.
func (a tokenAPI) revokeFamily(r *http.Request, by fabric.Issuer) error {
	return a.tokens.RevokeFamily(r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id"))
}
