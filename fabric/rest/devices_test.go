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
	ada := bearer(w.tokens(`{"reference":"ada"}`).Token)
	grace := bearer(w.tokens(`{"reference":"grace"}`).Token)
	r := w.call(ada, "POST", devices, `{"device_type":"iOS","device_token":"apns-1"}`)
	r.wantStatus(t, "POST", http.StatusCreated)
	first := as[device](t, r)
	if first.ID == "" {
		t.Error("POST: the device has no id")
	}
	if first.Type != "iOS" {
		t.Errorf("POST: the type is %q, want iOS", first.Type)
	}
	if first.Token != "apns-1" {
		t.Errorf("POST: the token is %q, want apns-1", first.Token)
	}
	if first.Registered == "" {
		t.Error("POST: the device has no date of registration")
	}
	if first.PushKey == "" {
		t.Error("POST: the device has no key for push notifications")
	}

	again := as[device](t, w.call(ada, "POST", devices,
		`{"device_type":"iOS","device_token":"apns-1","device_name":"Ada's"}`))
	if again.ID != first.ID {
		t.Errorf("after the second registration, the id of the device is %s, want %s", again.ID, first.ID)
	}
	if again.PushKey != first.PushKey {
		t.Errorf("after the second registration, the key of the device is %s, want %s", again.PushKey, first.PushKey)
	}
	if again.Name != "Ada's" {
		t.Errorf("after the second registration, the name of the device is %q, want Ada's", again.Name)
	}

	other := as[device](t, w.call(grace, "POST", devices, `{"device_type":"iOS","device_token":"apns-1"}`))
	if other.ID == first.ID {
		t.Errorf("the devices of two subscribers have the same id %s", other.ID)
	}
	if other.PushKey == first.PushKey {
		t.Errorf("the devices of two subscribers have the same key %s", other.PushKey)
	}

	r = w.call(w.basic(), "POST", devices, `{"device_type":"iOS","device_token":"x"}`)
	r.wantStatus(t, "POST by a backend", http.StatusUnauthorized)
}

func TestDeleteDevice(t *testing.T) {
	w := newWorld(t)
	ada := bearer(w.tokens(`{"reference":"ada"}`).Token)
	grace := bearer(w.tokens(`{"reference":"grace"}`).Token)
	created := w.call(ada, "POST", devices, `{"device_type":"iOS","device_token":"apns-1"}`)
	path := devices + "/" + as[device](t, created).ID

	r := w.call(grace, "DELETE", path, "")
	r.wantStatus(t, "DELETE by another subscriber", http.StatusNotFound)
	r = w.call(ada, "DELETE", path, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	if r.text != "" {
		t.Errorf("DELETE: the body is %s, want none", r.text)
	}
	r = w.call(ada, "DELETE", path, "")
	r.wantStatus(t, "DELETE again", http.StatusNotFound)
}

func TestDeviceFaults(t *testing.T) {
	w := newWorld(t)
	ada := bearer(w.tokens(`{"reference":"ada"}`).Token)
	long := strings.Repeat("x", 5000)
	for _, tt := range []struct{ body, want string }{
		{`{}`, "device_type:missing_required_parameter device_token:missing_required_parameter"},
		{
			`{"device_type":"Toaster","device_token":"a b"}`,
			"device_type:invalid_parameter device_token:invalid_parameter",
		},
		{
			`{"device_type":1,"device_token":"x","device_name":"\u0000"}`,
			"device_type:invalid_parameter device_name:invalid_parameter",
		},
		{`{"device_type":"iOS","device_token":"` + long + `"}`, "device_token:invalid_parameter"},
	} {
		if got := w.call(ada, "POST", devices, tt.body).faults(t); got != tt.want {
			t.Errorf("POST %.80s = %s, want %s", tt.body, got, tt.want)
		}
	}

	for i := range 50 {
		w.call(ada, "POST", devices, fmt.Sprintf(`{"device_type":"iOS","device_token":"%d"}`, i))
	}

	got := w.call(ada, "POST", devices, `{"device_type":"iOS","device_token":"one more"}`).faults(t)
	if got != "device_token:invalid_parameter" {
		t.Errorf("POST of a token with a space = %s, want an error about device_token", got)
	}
	got = w.call(ada, "POST", devices, `{"device_type":"iOS","device_token":"more"}`).faults(t)
	if got != "device_token:invalid_parameter" {
		t.Errorf("POST of a 51st device = %s, want an error about device_token", got)
	}
	r := w.call(ada, "POST", devices, `{"device_type":"iOS","device_token":"49"}`)
	r.wantStatus(t, "POST of one of the 50 devices again", http.StatusCreated)
}

func TestDevicesAndPresenceOfSubscriber(t *testing.T) {
	w := newWorld(t)
	ada := w.tokens(`{"reference":"ada"}`)
	r := w.call(bearer(ada.Token), "POST", "/subscriber/devices",
		`{"device_type":"iOS","device_token":"push-secret","device_name":"phone"}`)
	id := as[device](t, r).ID
	path := subscribers + "/" + ada.SubscriberID
	r = w.call(w.basic(), "GET", path+"/devices", "")
	r.wantStatus(t, "GET of the devices", http.StatusOK)
	r.wantText(t, "GET of the devices", id)
	r.wantNoText(t, "GET of the devices", "push-secret", "key")

	for _, request := range []struct{ method, path string }{
		{"GET", "/devices"},
		{"DELETE", "/devices/" + id},
		{"GET", "/presence"},
	} {
		r := w.call(w.stranger(), request.method, path+request.path, "")
		r.wantStatus(t, request.method+" "+request.path+" by another project", http.StatusNotFound)
	}

	r = w.call(w.basic(), "DELETE", path+"/devices/"+id, "")
	r.wantStatus(t, "DELETE of a device", http.StatusNoContent)
	r = w.call(w.basic(), "DELETE", path+"/devices/"+id, "")
	r.wantStatus(t, "DELETE of a deleted device", http.StatusNotFound)
	r = w.call(w.basic(), "GET", path+"/presence", "")
	if got, want := strings.TrimSpace(r.text), `{"online":false,"since":null,"sockets":0}`; got != want {
		t.Errorf("GET of the presence: got %s, want %s", got, want)
	}
}
