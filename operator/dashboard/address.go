package dashboard

import (
	"io"
	"net/http"
	"strings"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
)

// A liveHint is a sentence below an input. It names the address that a new row will get. While the
// operator types in one of the inputs in Names, the page replaces the sentence with the response
// from Path.
type liveHint struct {
	Text, Path string
	Names      string // names of the inputs, separated by spaces
}

// addressFields returns the names of the fields from which the address of a resource of this kind
// is derived. The first field that is not empty is used.
func addressFields(k *kinds.Kind) []string {
	if k.AddressName == "" {
		return k.Name
	}
	return append([]string{k.AddressName}, k.Name...)
}

// addressInput returns the input from which the address of a resource is derived, or nil.
func addressInput(k *kinds.Kind, f *form) *input {
	for _, name := range addressFields(k) {
		if at := f.find(name); at != nil {
			return at
		}
	}
	return nil
}

// addAddressHint adds a hint to the form for a new resource: the address that the resource will
// get.
func (v *visit) addAddressHint(k *kinds.Kind, f *form) {
	context := "public"
	if k.Context != "" {
		context = k.Context
	}
	if at := addressInput(k, f); at != nil {
		at.Live = &liveHint{
			Text: words.Textf("The address is derived from it, in plain letters: “Team Standup” becomes "+
				"/%s/team-standup.",
				context),
			Path: v.base() + "/kinds/" + k.Path + "/address", Names: strings.Join(addressFields(k), " "),
		}
	}
}

// previewAddress serves POST /dashboard/projects/{project}/kinds/{kind}/address. It responds with a
// sentence that contains the address that a resource with these names would get.
func (a *resourcePages) previewAddress(v *visit) error {
	k, err := a.kind(v)
	if err != nil {
		return err
	}
	names := make(kinds.Values)
	for _, name := range addressFields(k) {
		names[name] = quoted(strings.TrimSpace(v.form.Get(name)))
	}
	path, taken, err := a.Fabric.Addresses.Preview(v.r.Context(), v.project.ID, k, names)
	return v.writeAddress(path, taken, err)
}

// previewSubscriberAddress serves POST /dashboard/projects/{project}/subscribers/address.
func (a *subscriberPages) previewSubscriberAddress(v *visit) error {
	path, taken, err := a.Fabric.Addresses.PreviewSubscriber(v.r.Context(), v.project.ID, v.form.Get("email"))
	return v.writeAddress(path, taken, err)
}

// writeAddress responds with a sentence about the address of a new row, as plain text.
func (v *visit) writeAddress(path string, taken bool, err error) error {
	if err != nil {
		return err
	}
	text := ""
	switch {
	case taken:
		text = words.Textf("%[1]s is already in use, so this one gets a random suffix: %[1]s--…", path)
	case path != "":
		text = words.Textf("Its address will be %s, even after it is renamed.", path)
	}

	web.NoStore(v.w)
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.w.Header().Set("X-Content-Type-Options", "nosniff")
	v.w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(v.w, v.say(text)) // the browser may have disconnected
	return nil
}
