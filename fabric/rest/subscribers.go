package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

type subscriberRequest struct {
	Email       *string `json:"email"`
	Password    *string `json:"password"`
	FirstName   *string `json:"first_name"`
	LastName    *string `json:"last_name"`
	DisplayName *string `json:"display_name"`
	JobTitle    *string `json:"job_title"`
	TimeZone    *string `json:"timezone"` // time_zone everywhere else
	Country     *string `json:"country"`
	CompanyName *string `json:"company_name"`
}

func (in subscriberRequest) input() fabric.SubscriberInput {
	return fabric.SubscriberInput{Email: in.Email, Password: in.Password, Profile: fabric.Profile{
		FirstName: in.FirstName, LastName: in.LastName, DisplayName: in.DisplayName, JobTitle: in.JobTitle,
		TimeZone: in.TimeZone, Country: in.Country, CompanyName: in.CompanyName,
	}}
}

// createSubscriber serves POST /api/fabric/subscribers and
// /api/fabric/resources/subscribers.
func (a *API) createSubscriber(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	in, err := web.Decode[subscriberRequest](r)
	if err != nil {
		return subscriberFault(also(err, in.input().Check(true)))
	}
	s, err := a.fabric.Subscribers.Create(r.Context(), by.ProjectID, in.input())
	if err != nil {
		return subscriberFault(err)
	}
	return web.JSON(w, http.StatusCreated, fabric.DocumentOf(s))
}

func subscriberFault(err error) error { return respelled(err, "time_zone", "timezone") }

// listSubscribers serves GET /api/fabric/resources/subscribers.
func (a *API) listSubscribers(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.Subscriber], error) {
		return a.fabric.Subscribers.List(r.Context(), by.ProjectID, q)
	}, fabric.DocumentOf)
}

// getSubscriber serves GET /api/fabric/resources/subscribers/{id}.
func (a *API) getSubscriber(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	s, err := a.fabric.Subscribers.Find(r.Context(), by.ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, fabric.DocumentOf(s))
}

// updateSubscriber serves PUT and PATCH /api/fabric/resources/subscribers/{id}. Members that
// are not sent are left unchanged. A new password or e-mail needs Management.
func (a *API) updateSubscriber(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if _, err := a.fabric.Subscribers.Find(r.Context(), by.ProjectID, r.PathValue("id")); err != nil {
		return err
	}
	in, err := web.Decode[subscriberRequest](r)
	if err != nil {
		return subscriberFault(also(err, in.input().Check(false)))
	}
	change := in.input()
	change.Rights = by.Rights
	s, err := a.fabric.Subscribers.Update(r.Context(), by.ProjectID, r.PathValue("id"), change)
	if err != nil {
		return subscriberFault(a.refused(r, by, err))
	}
	return web.JSON(w, http.StatusOK, fabric.DocumentOf(s))
}

// deleteSubscriber serves DELETE /api/fabric/resources/subscribers/{id}.
func (a *API) deleteSubscriber(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if err := a.fabric.Subscribers.Delete(r.Context(), by.ProjectID, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listSubscriberAddresses serves GET /api/fabric/resources/subscribers/{id}/addresses.
func (a *API) listSubscriberAddresses(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.Address], error) {
		return a.fabric.Subscribers.ListAddresses(r.Context(), by.ProjectID, r.PathValue("id"), q)
	}, showAddress)
}
