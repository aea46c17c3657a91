package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/cnf"
)

// An infoResponse describes a subscriber to its own apps.
type infoResponse struct {
	ID                  string            `json:"id"`
	Email               string            `json:"email"`
	FirstName           string            `json:"first_name"`
	LastName            string            `json:"last_name"`
	DisplayName         string            `json:"display_name"`
	JobTitle            string            `json:"job_title"`
	TimeZone            string            `json:"time_zone"`
	Country             string            `json:"country"`
	Region              string            `json:"region"`
	CompanyName         string            `json:"company_name"`
	PushNotificationKey string            `json:"push_notification_key"`
	AppSettings         *appSettings      `json:"app_settings,omitempty"`
	FabricAddresses     []addressResponse `json:"fabric_addresses"`
	SATClaims           satClaims         `json:"sat_claims"`
}

type appSettings struct {
	DisplayName string   `json:"display_name"`
	Scopes      []string `json:"scopes"`
}

type satClaims struct {
	Scope     []string   `json:"scope"`
	Cnf       *cnf.Claim `json:"cnf,omitempty"`
	ExpiresAt int64      `json:"expires_at"`
}

// info serves GET /api/fabric/subscriber/info and /subscriber/info.
func (a subscriberAPI) info(r *http.Request, sat fabric.Token) (body infoResponse, err error) {
	info, err := a.subscribers.Info(r.Context(), sat)
	if err != nil {
		return body, err
	}
	return showInfo(info, sat), nil
}

func showInfo(info fabric.Info, sat fabric.Token) infoResponse {
	s := info.Subscriber
	body := infoResponse{
		ID:              s.ID,
		Email:           s.Email,
		FirstName:       s.FirstName,
		LastName:        s.LastName,
		DisplayName:     s.DisplayName,
		JobTitle:        s.JobTitle,
		TimeZone:        s.TimeZone,
		Country:         s.Country,
		Region:          s.Region,
		CompanyName:     s.CompanyName,
		FabricAddresses: make([]addressResponse, len(info.Addresses)),
		SATClaims: satClaims{
			Scope:     append([]string{}, sat.Scope...),
			Cnf:       cnf.ClaimOf(sat.Binding),
			ExpiresAt: sat.ExpiresAt.Unix(),
		},
	}

	for i, address := range info.Addresses {
		body.FabricAddresses[i] = showAddress(address)
	}

	if app := info.Application; app != nil {
		body.AppSettings = &appSettings{DisplayName: app.Name, Scopes: append([]string{}, app.Scopes...)}
	}

	return body
}
