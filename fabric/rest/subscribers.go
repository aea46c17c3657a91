package rest

import (
	"errors"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

const (
	subscribers   = "/api/fabric/resources/subscribers"
	oneSubscriber = subscribers + "/{id}"
	ofSubscriber  = subscribers + "/{subscriber}" // prefix of the routes for a subscriber's objects
)

// subscriberAPI serves subscribers to their project.
type subscriberAPI struct {
	fabric      *fabric.Fabric
	subscribers *fabric.Subscribers
	by          *credentials
}

func (a subscriberAPI) routes() []route {
	by := a.by
	return []route{
		{"GET", subscribers, by.project(respondPage(a.list, fabric.DocumentOf))},
		{"POST", subscribers, by.project(created(a.create, fabric.DocumentOf))},
		{"POST", "/api/fabric/subscribers", by.project(created(a.create, fabric.DocumentOf))},
		{"DELETE", oneSubscriber, by.project(noContent(a.delete))},
		{"GET", oneSubscriber, by.project(respondOK(a.find, fabric.DocumentOf))},
		{"PATCH", oneSubscriber, by.project(respondOK(a.update, fabric.DocumentOf))},
		{"PUT", oneSubscriber, by.project(respondOK(a.update, fabric.DocumentOf))},
		{"GET", oneSubscriber + "/addresses", by.project(respondPage(a.listAddresses, showAddress))},
		{"GET", oneSubscriber + "/claims", by.project(respondOK(a.find, showClaims))},
		{"PUT", oneSubscriber + "/claims", by.project(respondOK(a.putClaims, showClaims))},
		{"POST", ofSubscriber + "/erase", by.manager(respondOK(a.erase, same))},
		{"GET", ofSubscriber + "/export", by.manager(respondOK(a.export, same))},
		{"GET", ofSubscriber + "/factors", by.project(respondPage(a.listFactors, showFactor))},
		{"DELETE", ofSubscriber + "/factors/{id}", by.manager(noContent(a.removeFactor))},
		{"DELETE", ofSubscriber + "/invitation", by.manager(noContent(a.withdrawInvitation))},
		{"POST", ofSubscriber + "/invitation", by.manager(accepted(a.invite, showRecipient))},
		{"GET", ofSubscriber + "/presence", by.project(respondOK(a.presence, showPresence))},
		{"DELETE", ofSubscriber + "/tokens", by.project(noContent(a.revoke))},
		{"POST", ofSubscriber + "/verification", by.manager(accepted(a.verify, showRecipient))},
		{"GET", "/api/fabric/subscriber/info", by.bearer(respondOK(a.info, same), fabric.SAT)},
		{"GET", "/subscriber/info", by.bearer(respondOK(a.info, same), fabric.SAT)},
	}
}

// A subscriberRequest is the body of a request that creates or updates a subscriber.
type subscriberRequest struct {
	Email       *string             `json:"email"`
	Password    *string             `json:"password"`
	FirstName   *string             `json:"first_name"`
	LastName    *string             `json:"last_name"`
	DisplayName *string             `json:"display_name"`
	JobTitle    *string             `json:"job_title"`
	TimeZone    *string             `json:"timezone"` // other requests use time_zone
	Country     *string             `json:"country"`
	CompanyName *string             `json:"company_name"`
	RecordCalls *fabric.RecordCalls `json:"record_calls"`

	ForwardBusy     *string `json:"forward_busy"`
	ForwardNoAnswer *string `json:"forward_no_answer"`
	RingSeconds     *int    `json:"ring_seconds"`
}

func (in subscriberRequest) input() fabric.SubscriberInput {
	return fabric.SubscriberInput{
		Email:       in.Email,
		Password:    in.Password,
		RecordCalls: in.RecordCalls,
		Forwarding: fabric.ForwardingInput{
			Busy:        in.ForwardBusy,
			NoAnswer:    in.ForwardNoAnswer,
			RingSeconds: in.RingSeconds,
		},
		Profile: fabric.Profile{
			FirstName:   in.FirstName,
			LastName:    in.LastName,
			DisplayName: in.DisplayName,
			JobTitle:    in.JobTitle,
			TimeZone:    in.TimeZone,
			Country:     in.Country,
			CompanyName: in.CompanyName,
		},
	}
}

func subscriberFault(err error) error { return respelled(err, "time_zone", "timezone") }

// create serves POST /api/fabric/subscribers and /api/fabric/resources/subscribers. If record_calls
// is not inherit, the caller needs Management.
func (a subscriberAPI) create(r *http.Request, by fabric.Issuer) (s fabric.Subscriber, err error) {
	in, err := web.Decode[subscriberRequest](r)
	if err != nil {
		return s, subscriberFault(joinFaults(err, in.input().Check(true)))
	}

	made := in.input()
	made.Rights = by.Rights
	s, err = a.subscribers.Create(r.Context(), by.ProjectID, made)
	return s, subscriberFault(a.by.refused(r, by, err))
}

// list serves GET /api/fabric/resources/subscribers.
func (a subscriberAPI) list(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[fabric.Subscriber], error) {
	return a.subscribers.List(r.Context(), by.ProjectID, q)
}

// find serves GET /api/fabric/resources/subscribers/{id}.
func (a subscriberAPI) find(r *http.Request, by fabric.Issuer) (fabric.Subscriber, error) {
	return a.subscribers.Find(r.Context(), by.ProjectID, r.PathValue("id"))
}

// update serves PUT and PATCH /api/fabric/resources/subscribers/{id}. Members that are not sent
// remain unchanged. A new password, email or record_calls needs Management.
func (a subscriberAPI) update(r *http.Request, by fabric.Issuer) (s fabric.Subscriber, err error) {
	if s, err = a.find(r, by); err != nil {
		return s, err
	}
	in, err := web.Decode[subscriberRequest](r)
	if err != nil {
		return s, subscriberFault(joinFaults(err, in.input().Check(false)))
	}

	change := in.input()
	change.Rights = by.Rights
	s, err = a.subscribers.Update(r.Context(), by.ProjectID, r.PathValue("id"), change)
	return s, subscriberFault(a.by.refused(r, by, err))
}

// delete serves DELETE /api/fabric/resources/subscribers/{id}.
func (a subscriberAPI) delete(r *http.Request, by fabric.Issuer) error {
	return a.subscribers.Delete(r.Context(), by.ProjectID, r.PathValue("id"))
}

// listAddresses serves GET /api/fabric/resources/subscribers/{id}/addresses.
func (a subscriberAPI) listAddresses(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[fabric.Address], error) {
	return a.subscribers.ListAddresses(r.Context(), by.ProjectID, r.PathValue("id"), q)
}

// claimsResponse holds the OpenID Connect claims that are not in a subscriber's profile.
type claimsResponse struct {
	EmailVerified bool `json:"email_verified"`
	fabric.StandardClaims
}

// showClaims formats the claims of a subscriber. Together with find, it serves GET
// /api/fabric/resources/subscribers/{id}/claims.
func showClaims(s fabric.Subscriber) claimsResponse { return claimsResponse{s.Verified, s.Claims} }

// putClaims serves PUT /api/fabric/resources/subscribers/{id}/claims. It replaces all claims, but
// leaves email_verified unchanged if it is not sent. To verify an email or a telephone number, the caller
// needs Management.
func (a subscriberAPI) putClaims(r *http.Request, by fabric.Issuer) (s fabric.Subscriber, err error) {
	members, err := web.Members(r)
	if err != nil {
		return s, err
	}

	claims, err := web.FromMembers[fabric.StandardClaims](members)
	account, bad := web.FromMembers[struct {
		EmailVerified *bool `json:"email_verified"`
	}](members)

	in := fabric.SubscriberInput{Claims: &claims, Verified: account.EmailVerified, Rights: by.Rights}
	if err := errors.Join(err, bad); err != nil {
		return s, joinFaults(err, in.Check(false))
	}
	s, err = a.subscribers.Update(r.Context(), by.ProjectID, r.PathValue("id"), in)
	return s, a.by.refused(r, by, err)
}

// export serves GET /api/fabric/resources/subscribers/{subscriber}/export. Credentials without Voice
// cannot open recordings, so their export shows shortened recording Sids.
func (a subscriberAPI) export(r *http.Request, by fabric.Issuer) (fabric.Export, error) {
	e, err := a.fabric.ExportSubscriber(r.Context(), by.ProjectID, r.PathValue("subscriber"))
	if err != nil {
		return fabric.Export{}, err
	}
	if !by.Rights.Has(fabric.Voice) {
		e.HideSids()
	}
	return e, nil
}

// erase serves POST /api/fabric/resources/subscribers/{subscriber}/erase. It also deletes recordings,
// so it needs Voice in addition to Management.
func (a subscriberAPI) erase(r *http.Request, by fabric.Issuer) (fabric.Erasure, error) {
	if !by.Rights.Has(fabric.Voice) {
		return fabric.Erasure{}, problem.NoCredentials().Because("erasing a subscriber needs the scope Voice")
	}
	return a.subscribers.Erase(r.Context(), by.ProjectID, r.PathValue("subscriber"))
}

// revoke serves DELETE /api/fabric/resources/subscribers/{subscriber}/tokens.
func (a subscriberAPI) revoke(r *http.Request, by fabric.Issuer) error {
	return a.subscribers.Revoke(r.Context(), by.ProjectID, r.PathValue("subscriber"))
}

// A factorResponse is a second factor of a subscriber in responses.
type factorResponse struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Name      string  `json:"name"`
	BackedUp  bool    `json:"backed_up"`
	Left      int     `json:"left"`
	CreatedAt string  `json:"created_at"`
	UsedAt    *string `json:"used_at"`
}

// showFactor converts a second factor for a response.
func showFactor(f factor.Factor) factorResponse {
	return factorResponse{
		ID:        f.ID,
		Type:      f.Type,
		Name:      f.Name,
		BackedUp:  f.BackedUp,
		Left:      f.Left,
		CreatedAt: iso(f.Created),
		UsedAt:    isoOrNull(f.Used),
	}
}

// listFactors serves GET /api/fabric/resources/subscribers/{subscriber}/factors.
func (a subscriberAPI) listFactors(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[factor.Factor], error) {
	return a.subscribers.ListFactors(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
}

// removeFactor serves DELETE /api/fabric/resources/subscribers/{subscriber}/factors/{id}.
func (a subscriberAPI) removeFactor(r *http.Request, by fabric.Issuer) error {
	return a.subscribers.RemoveFactor(r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id"))
}

// A recipientResponse names the recipient of a queued mail.
type recipientResponse struct {
	SubscriberID string `json:"subscriber_id"`
	Email        string `json:"email"`
}

func showRecipient(s fabric.Subscriber) recipientResponse { return recipientResponse{s.ID, s.Email} }

type invitationRequest struct {
	Inviter string `json:"inviter"`
}

// invite serves POST /api/fabric/resources/subscribers/{subscriber}/invitation. The body is optional.
func (a subscriberAPI) invite(r *http.Request, by fabric.Issuer) (s fabric.Subscriber, err error) {
	var in invitationRequest
	if r.ContentLength != 0 {
		if in, err = web.Decode[invitationRequest](r); err != nil {
			return s, err
		}
	}
	return a.subscribers.Invite(r.Context(), by.ProjectID, r.PathValue("subscriber"), in.Inviter)
}

// withdrawInvitation serves DELETE /api/fabric/resources/subscribers/{subscriber}/invitation.
func (a subscriberAPI) withdrawInvitation(r *http.Request, by fabric.Issuer) error {
	err := a.subscribers.WithdrawInvitation(r.Context(), by.ProjectID, r.PathValue("subscriber"))
	if p := problem.First(err); p != nil && p.Code == fabric.CodeNoInvitation {
		return problem.NoSuch("invitation")
	}
	return err
}

// verify serves POST /api/fabric/resources/subscribers/{subscriber}/verification.
func (a subscriberAPI) verify(r *http.Request, by fabric.Issuer) (fabric.Subscriber, error) {
	return a.subscribers.Verify(r.Context(), by.ProjectID, r.PathValue("subscriber"))
}

// A presenceResponse is the presence of a subscriber in responses.
type presenceResponse struct {
	Online  bool    `json:"online"`
	Since   *string `json:"since"`
	Sockets int     `json:"sockets"`
}

// showPresence converts a presence for a response.
func showPresence(p fabric.Presence) presenceResponse {
	return presenceResponse{Online: p.Online(), Since: isoOrNull(p.Since), Sockets: p.Sockets}
}

// presence serves GET /api/fabric/resources/subscribers/{subscriber}/presence.
func (a subscriberAPI) presence(r *http.Request, by fabric.Issuer) (fabric.Presence, error) {
	s, err := a.subscribers.Find(r.Context(), by.ProjectID, r.PathValue("subscriber"))
	if err != nil {
		return fabric.Presence{}, err
	}
	return a.fabric.Presence.Find(r.Context(), s.ProjectID, s.ID)
}
