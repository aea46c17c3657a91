package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/cnf"
)

// An infoResponse describes a subscriber to an app of this subscriber. The app sent a SAT, a subscriber
// access token.
type infoResponse struct {
	ID          string `json:"id"`
	Email       string `json:"email"`
	FirstName   string `json:"first_name"`
	LastName    string `json:"last_name"`
	DisplayName string `json:"display_name"`
	JobTitle    string `json:"job_title"`
	TimeZone    string `json:"time_zone"`
	Country     string `json:"country"`
	Region      string `json:"region"`
	CompanyName string `json:"company_name"`

	// PushNotificationKey is always "", because each device has its own key. The API requires the
	// member.
	PushNotificationKey string `json:"push_notification_key"`

	AppSettings     *appSettings      `json:"app_settings,omitempty"` // nil if the SAT was issued for no app
	FabricAddresses []addressResponse `json:"fabric_addresses"`
	SATClaims       satClaims         `json:"sat_claims"`
}

// appSettings describes the app that the SAT was issued for.
type appSettings struct {
	DisplayName string   `json:"display_name"`
	Scopes      []string `json:"scopes"`
}

// satClaims contains claims of the SAT.
type satClaims struct {
	Scope     []string   `json:"scope"`
	Cnf       *cnf.Claim `json:"cnf,omitempty"` // the key or certificate that the SAT is bound to; may be nil
	ExpiresAt int64      `json:"expires_at"`    // Unix seconds
}

// info serves GET /api/fabric/subscriber/info and /subscriber/info.
func (a subscriberAPI) info(r *http.Request, sat fabric.Token) (infoResponse, error) {
	info, err := a.subscribers.Info(r.Context(), sat)
	if err != nil {
		return infoResponse{}, err
	}
	return showInfo(info, sat), nil
}

// showInfo converts the info of the subscriber of a SAT for a response.
func showInfo(info fabric.Info, sat fabric.Token) infoResponse {
	s := info.Subscriber
	response := infoResponse{
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
			Scope:     notNull(sat.Scope),
			Cnf:       cnf.ClaimOf(sat.Binding),
			ExpiresAt: sat.ExpiresAt.Unix(),
		},
	}

	for i, address := range info.Addresses {
		response.FabricAddresses[i] = showAddress(address)
	}
	if app := info.Application; app != nil {
		response.AppSettings = &appSettings{
			DisplayName: app.Name,
			Scopes:      notNull(app.Scopes),
		}
	}
	return response
}

// notNull returns a copy of texts that is never nil. JSON shows it as an array, even if it is
// empty, whereas it would show a nil slice as null.
func notNull(texts []string) []string { return append([]string{}, texts...) }
