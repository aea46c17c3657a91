package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const devices = "/subscriber/devices"

type device struct {
	ID         string `json:"id"`
	Type       string `json:"device_type"`
	Token      string `json:"device_token"`
	Name       string `json:"device_name"`
	Registered string `json:"date_registered"`
	PushKey    string `json:"push_notification_key"`
}

func TestDevices(t *testing.T) {
	w := newWorld(t)
	ada, grace := bearer(w.tokens(`{"reference":"ada"}`).Token), bearer(w.tokens(`{"reference":"grace"}`).Token)
	r := w.call(ada, "POST", devices, `{"device_type":"iOS","device_token":"apns-1"}`)
	first := as[device](t, r)
	if r.status != http.StatusCreated || first.ID == "" || first.Type != "iOS" || first.Token != "apns-1" ||
		first.Registered == "" || first.PushKey == "" {
		t.Errorf("POST = %d %s, want 201 with all members", r.status, r.text)
	}

	again := as[device](t, w.call(ada, "POST", devices,
		`{"device_type":"iOS","device_token":"apns-1","device_name":"Ada's"}`))
	if again.ID != first.ID || again.PushKey != first.PushKey || again.Name != "Ada's" {
		t.Errorf("the same device again = %+v, want the id and key of %+v", again, first)
	}

	other := as[device](t, w.call(grace, "POST", devices, `{"device_type":"iOS","device_token":"apns-1"}`))
	if other.ID == first.ID || other.PushKey == first.PushKey {
		t.Error("another subscriber's device has the same id or key")
	}

	if r := w.call(grace, "DELETE", devices+"/"+first.ID, ""); r.status != http.StatusNotFound {
		t.Errorf("DELETE by another = %d, want 404", r.status)
	}
	if r := w.call(ada, "DELETE", devices+"/"+first.ID, ""); r.status != http.StatusNoContent || r.text != "" {
		t.Errorf("DELETE = %d %s, want 204", r.status, r.text)
	}

	if r := w.call(ada, "DELETE", devices+"/"+first.ID, ""); r.status != http.StatusNotFound {
		t.Errorf("DELETE again = %d, want 404", r.status)
	}
	r = w.call(w.basic(), "POST", devices, `{"device_type":"iOS","device_token":"x"}`)
	if r.status != http.StatusUnauthorized {
		t.Errorf("POST by a backend = %d, want 401", r.status)
	}
}

func TestDeviceFaults(t *testing.T) {
	w := newWorld(t)
	ada := bearer(w.tokens(`{"reference":"ada"}`).Token)
	for body, want := range map[string]string{
		`{}`: "device_type:missing_required_parameter device_token:missing_required_parameter",
		`{"device_type":"Toaster","device_token":"a b"}`: "device_type:invalid_parameter " +
			"device_token:invalid_parameter",
		`{"device_type":1,"device_token":"x","device_name":"\u0000"}`: "device_type:invalid_parameter " +
			"device_name:invalid_parameter",
		`{"device_type":"iOS","device_token":"` + strings.Repeat("x", 5000) + `"}`: "device_token:invalid_parameter",
	} {
		if got := w.call(ada, "POST", devices, body).faults(t); got != want {
			t.Errorf("POST %.80s = %s, want %s", body, got, want)
		}
	}

	for i := range 50 {
		w.call(ada, "POST", devices, fmt.Sprintf(`{"device_type":"iOS","device_token":"%d"}`, i))
	}

	got := w.call(ada, "POST", devices, `{"device_type":"iOS","device_token":"one more"}`).faults(t)
	if got != "device_token:invalid_parameter" {
		t.Errorf("POST of a token with a space = %s, want it refused", got)
	}
	got = w.call(ada, "POST", devices, `{"device_type":"iOS","device_token":"more"}`).faults(t)
	if got != "device_token:invalid_parameter" {
		t.Errorf("POST of a 51st device = %s, want it refused", got)
	}
	if r := w.call(ada, "POST", devices, `{"device_type":"iOS","device_token":"49"}`); r.status != http.StatusCreated {
		t.Errorf("POST of one of the 50 again = %d %s, want 201", r.status, r.text)
	}
}
