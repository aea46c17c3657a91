package dashboard

import (
	"errors"
	"strconv"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
)

// uriFaults describes the faults of a client's redirect URIs, and what to write instead.
var uriFaults = map[idp.URIFault]string{
	idp.URIMalformed: "%s is not a complete address. Begin with https://, and leave out “#”, “*”, spaces and " +
		"user names.",
	idp.URIUnescaped: "%s contains quotes, brackets or other characters that an address must escape. " +
		"Copy it from the address bar of a browser.",
	idp.URIUnencrypted: "%s is not encrypted. Begin with https://, or http://localhost while you develop the app.",
	idp.URIPrivate: "%s is not an address of a website. Begin with https://, or http://localhost while you develop " +
		"the app. Native apps can also begin with a domain name of yours in reverse, such as com.example.app:/",
}

// noURI is the fault of a client that needs a redirect URI and has none.
const noURI = "Enter the address to which people return after they sign in. Begin with https://, or " +
	"http://localhost while you develop the app."

// maxShownURI is the maximum number of characters of a wrong URI in an error.
const maxShownURI = 100

// explainURIs replaces the errors in err about the redirect URIs of client c with texts that say
// what to write. The API's own texts are for developers.
func explainURIs(v *visit, c idp.Client, err error) error {
	var all []error
	for _, p := range problem.All(err) {
		explained := *p
		switch {
		case p.Kind != problem.Invalid: // such as a change by another operator
		case p.Param == "redirect_uri":
			explained.Message = explainURI(v, c, p.Message, c.RedirectURIs)
		case p.Param == "post_logout_redirect_uri":
			explained.Message = explainURI(v, c, p.Message, c.LogoutURIs)
		}
		all = append(all, &explained)
	}
	if all == nil {
		return err
	}
	return errors.Join(all...)
}

// explainURI returns the text for an error of the API about one of uris.
func explainURI(v *visit, c idp.Client, message string, uris []string) string {
	if len(uris) == 0 {
		return noURI
	}
	for _, uri := range uris {
		text, ok := uriFaults[c.FaultOfURI(uri)]
		if !ok || !strings.HasPrefix(message, strconv.Quote(uri)+" ") {
			continue
		}
		if short := []rune(uri); len(short) > maxShownURI {
			uri = string(short[:maxShownURI]) + "…"
		}
		return words.Textf(text, v.quote(uri))
	}
	return message
}
