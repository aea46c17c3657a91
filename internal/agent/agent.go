// Package agent says in words what browsers and programs say of themselves, so that
// somebody knows a device again in a list of sign-ins, or in a mail about one.
package agent

import "strings"

// agents tell browsers apart by a part of their User-Agent. Most name others too, whose
// pages they want to be shown; so the first that fits counts.
var agents = [][2]string{
	{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Opera", "Opera"}, {"SamsungBrowser/", "Samsung Internet"},
	{"Vivaldi/", "Vivaldi"}, {"FxiOS/", "Firefox"}, {"Firefox/", "Firefox"},
	{"CriOS/", "Chrome"}, {"HeadlessChrome/", "Chrome"}, {"Chromium/", "Chromium"}, {"; wv)", "An app"},
	{"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"Mobile/", "An app"},
}

// systems tell what a browser runs on, likewise.
var systems = [][2]string{
	{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"},
	{"CrOS", "ChromeOS"}, {"Macintosh", "Mac"}, {"Mac OS X", "Mac"},
	{"FreeBSD", "FreeBSD"}, {"Linux", "Linux"},
}

// Name says in words what sends a User-Agent: "Firefox on Linux". Programs that are no
// browser go by the name that they give themselves.
func Name(userAgent string) string {
	first := func(of [][2]string) string {
		for _, rule := range of {
			if strings.Contains(userAgent, rule[0]) {
				return rule[1]
			}
		}
		return ""
	}
	product, system := first(agents), first(systems)
	switch {
	case !strings.HasPrefix(userAgent, "Mozilla/"):
		name, _, _ := strings.Cut(userAgent, "/")
		name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
		if name == "" {
			return "An unknown device"
		}
		return name
	case product == "":
		product = "A browser"
	}
	if system == "" {
		return product
	}
	return product + " on " + system
}
