package oidc

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// devicePages serves the page on which people enter the code that a device shows.
type devicePages struct {
	*pages
	flow *flow
}

// DeviceAuthorization serves POST /oauth/device_authorization (RFC 8628, section 3.1).
func (s *server) DeviceAuthorization(ctx context.Context,
	r *op.ClientRequest[oidc.DeviceAuthorizationRequest]) (*op.Response, error) {
	codes, err := s.Devices.Begin(ctx, registered(r.Client), r.Form.Get("scope"), r.Form["resource"])
	if err != nil {
		return nil, s.status(ctx, err)
	}
	page := s.authURL + "/device"
	return op.NewResponse(&oidc.DeviceAuthorizationResponse{
		DeviceCode:              codes.Device,
		UserCode:                codes.User,
		VerificationURI:         page,
		VerificationURIComplete: page + "?user_code=" + codes.User,
		ExpiresIn:               int(codes.ExpiresIn / time.Second),
		Interval:                int(codes.Interval / time.Second),
	}), nil
}

// showDevice serves GET /device. A device may show this URL as a QR code, with user_code in the
// query (RFC 8628, section 3.3.1). The parameter only fills in the form.
func (dp *devicePages) showDevice(w http.ResponseWriter, r *http.Request) error {
	code, _ := idp.ReadUserCode(r.URL.Query().Get("user_code"))
	return dp.write(w, r, templates.Device{Token: dp.pageToken(w, r), Code: code}, templates.Options{})
}

// enterUserCode serves POST /device, the form on the page of showDevice.
func (dp *devicePages) enterUserCode(w http.ResponseWriter, r *http.Request) error {
	form, err := dp.pageForm(w, r)
	if err != nil {
		return err
	}

	typed := form.Get("user_code")
	req, c, err := dp.Devices.EnterUserCode(r.Context(), typed, web.Network(r))
	switch {
	case errors.Is(err, problem.NotFound):
		unknown := dp.words(r).Say("device.unknown")
		page := templates.Device{Token: dp.pageToken(w, r), Code: typed, Error: unknown}
		return dp.write(w, r, page, templates.Options{Status: http.StatusUnprocessableEntity})
	case errors.Is(err, problem.RateLimited):
		wait := problem.First(err).RetryAfter
		seconds := max(1, int(wait.Seconds()))
		w.Header().Set("Retry-After", strconv.Itoa(seconds))

		throttled := dp.words(r).Say("device.throttled", "Count", int(wait.Minutes())+1)
		page := templates.Device{Token: dp.pageToken(w, r), Code: typed, Error: throttled}
		return dp.write(w, r, page, templates.Options{Status: http.StatusTooManyRequests})
	case err != nil:
		return err
	}

	return dp.flow.proceed(w, r, c, req)
}

// devicePage shows the page that asks whether the device of a request may be signed in.
func (cp *consentPages) devicePage(w http.ResponseWriter, r *http.Request, req idp.AuthRequest,
	page templates.Consent) error {
	code, err := cp.Devices.UserCode(r.Context(), req)
	if err != nil {
		return stale(err)
	}
	return cp.write(w, r, templates.DeviceConsent{Consent: page, UserCode: code}, templates.Options{})
}

// signInDevice signs in the device of a request with the login s. The device accepts only the first
// answer. The request is deleted only after the answer has been stored, so that the person can try
// again if storing it fails.
func (f *flow) signInDevice(w http.ResponseWriter, r *http.Request, c idp.Client,
	req idp.AuthRequest, s idp.Login) error {
	if err := f.Devices.SignIn(r.Context(), req, s); err != nil {
		return stale(err)
	}
	f.dropAnswered(w, r, req)
	return f.write(w, r, templates.DeviceDone{App: f.appName(r, c, req)}, templates.Options{})
}

func (f *flow) denyDevice(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest) error {
	if err := f.Devices.Deny(r.Context(), req); err != nil {
		return stale(err)
	}
	f.dropAnswered(w, r, req)
	return f.write(w, r, templates.DeviceDone{App: f.appName(r, c, req), Denied: true}, templates.Options{})
}

// dropAnswered deletes an answered request of a device. A failure does no harm, because the request
// expires by itself and the device does not accept a second answer.
func (f *flow) dropAnswered(w http.ResponseWriter, r *http.Request, req idp.AuthRequest) {
	f.cookies.EndFlow(w, r, req.ID)
	if err := f.Requests.Drop(r.Context(), req); err != nil && !errors.Is(err, problem.NotFound) {
		web.LogInternal(r, f.log, err)
	}
}

// stale converts problem.NotFound, the error for a device that is no longer waiting, into errStale.
func stale(err error) error {
	if errors.Is(err, problem.NotFound) {
		return errStale
	}
	return err
}
