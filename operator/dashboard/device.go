package dashboard

import "strings"

// device tells in a few words what a User-Agent says of a browser.
func device(agent string) string {
	browser := first(agent, "Edg/", "Edge", "OPR/", "Opera", "Firefox/", "Firefox", "Chrome/", "Chrome",
		"Safari/", "Safari", "curl/", "curl")
	system := first(agent, "Android", "Android", "iPhone", "iPhone", "iPad", "iPad", "Windows", "Windows",
		"Mac OS X", "macOS", "CrOS", "ChromeOS", "Linux", "Linux")
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser+system != "":
		return browser + system
	}
	return "A browser"
}

// first returns the name behind the first sign that a text has, of pairs of sign and name.
func first(text string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if strings.Contains(text, pairs[i]) {
			return pairs[i+1]
		}
	}
	return ""
}
