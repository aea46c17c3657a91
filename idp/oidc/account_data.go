package oidc

import (
	"net/http"
	"net/url"
	"time"

	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// showData shows whether the subscriber's calls are recorded. If so, this includes calls with
// people whose own setting is off. Only operators and backends can change the setting.
func showData(ac *account, r *http.Request, v visit, page *templates.AccountPage) (err error) {
	page.Recorded, err = ac.Fabric.RecordsCall(r.Context(), v.ProjectID, v.SubscriberID)
	return err
}

// downloadsPerHour is the number of times per hour that subscribers may download their data. The
// number is small because a download reads all data.
const downloadsPerHour = 6

// downloadData serves POST /account/data. It sends all data about the subscriber as JSON. A login to
// the account page is not enough to fetch recordings, so their Sids are shortened.
func (ac *account) downloadData(w http.ResponseWriter, r *http.Request, v visit, _ url.Values) error {
	err := ac.Limits.TakeOf(r.Context(), limit.Exports, v.SubscriberID, limit.Of(downloadsPerHour, time.Hour))
	if err != nil {
		return err
	}

	e, err := ac.Fabric.ExportSubscriber(r.Context(), v.ProjectID, v.SubscriberID)
	if err != nil {
		return err
	}
	e.HideSids()
	document, err := e.JSON()
	if err != nil {
		return err
	}

	web.NoStore(w)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="account.json"`)
	_, _ = w.Write(append(document, '\n')) // an error means that the browser has disconnected
	return nil
}
