package rest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/selvage/selvage/fabric"
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
		Reference: in.Reference, ExpireAt: (*int64)(in.ExpireAt), ApplicationID: in.ApplicationID,
		Password:    in.Password,
		Fingerprint: in.Fingerprint, Scope: in.Scope, Ch: in.Ch,
		Profile: fabric.Profile{
			FirstName: in.FirstName, LastName: in.LastName, DisplayName: in.DisplayName, JobTitle: in.JobTitle,
			TimeZone: in.TimeZone, Country: in.Country, Region: in.Region, CompanyName: in.CompanyName,
		},
	}
}

// seconds is a unix time, sent as a number or, as forms do, as a string of digits.
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

// words is a list of words, sent as an array of strings or as one string with spaces.
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

// createSubscriberToken serves POST /api/fabric/subscribers/tokens. Changing the password of
// an existing subscriber needs Management.
func (a *API) createSubscriberToken(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	in, err := web.Decode[subscriberTokenRequest](r)
	if err != nil {
		return also(err, a.fabric.Tokens.CheckSubscriber(in.input()))
	}
	tokens, err := a.fabric.Tokens.IssueSubscriber(r.Context(), by, in.input())
	if err != nil {
		return a.refused(r, by, err)
	}
	return web.JSON(w, http.StatusOK, subscriberTokenResponse{tokens.SubscriberID, tokens.Access, tokens.Refresh})
}

// refreshToken serves POST /api/fabric/subscribers/tokens/refresh.
func (a *API) refreshToken(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	in, err := web.Decode[struct {
		RefreshToken string `json:"refresh_token"`
	}](r)
	if err != nil {
		return err
	}
	tokens, err := a.fabric.Tokens.Refresh(r.Context(), by, in.RefreshToken)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, tokenResponse{tokens.Access, tokens.Refresh})
}

type guestTokenRequest struct {
	AllowedAddresses []string `json:"allowed_addresses"`
	ExpireAt         *seconds `json:"expire_at"`
	Ch               string   `json:"ch"`
	Region           *string  `json:"region"`
}

func (in guestTokenRequest) input() fabric.GuestTokenInput {
	return fabric.GuestTokenInput{AllowedAddresses: in.AllowedAddresses, ExpireAt: (*int64)(in.ExpireAt),
		Ch: in.Ch, Region: in.Region}
}

// createGuestToken serves POST /api/fabric/guests/tokens.
func (a *API) createGuestToken(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	in, err := web.Decode[guestTokenRequest](r)
	if err != nil {
		return also(err, a.fabric.Tokens.CheckGuest(in.input()))
	}
	tokens, err := a.fabric.Tokens.IssueGuest(r.Context(), by, in.input())
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, tokenResponse{tokens.Access, tokens.Refresh})
}

type inviteRequest struct {
	AddressID string   `json:"address_id"`
	ExpiresAt *seconds `json:"expires_at"` // expire_at everywhere else
}

func (in inviteRequest) input() fabric.InviteInput {
	return fabric.InviteInput{AddressID: in.AddressID, ExpiresAt: (*int64)(in.ExpiresAt)}
}

// createInvite serves POST /api/fabric/subscriber/invites.
func (a *API) createInvite(w http.ResponseWriter, r *http.Request, sat fabric.Token) error {
	in, err := web.Decode[inviteRequest](r)
	if err != nil {
		return also(err, a.fabric.Tokens.CheckInvite(in.input()))
	}
	token, err := a.fabric.Tokens.IssueInvite(r.Context(), sat, in.input())
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, tokenResponse{Token: token})
}

// createEmbedToken serves POST /api/fabric/embeds/tokens. The key in the body is the only
// credential it needs.
func (a *API) createEmbedToken(w http.ResponseWriter, r *http.Request) error {
	in, err := web.Decode[struct {
		Token string `json:"token"`
	}](r)
	if err != nil {
		return err
	}
	token, err := a.fabric.Tokens.IssueEmbed(r.Context(), in.Token)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, tokenResponse{Token: token})
}
