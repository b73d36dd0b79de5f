package console

import (
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/services/identity"
)

//go:embed pages console.css icon.svg
var files embed.FS

// pages has the templates by name. Each is combined with the frame page.html.
var pages = parsePages()

func parsePages() map[string]*template.Template {
	frame := template.Must(template.New("").Funcs(templateFuncs).ParseFS(files, "pages/page.html", "pages/parts.html"))
	out := map[string]*template.Template{}
	pageNames, _ := fs.Glob(files, "pages/*.html")
	for _, p := range pageNames {
		if name := strings.TrimSuffix(path.Base(p), ".html"); name != "page" && name != "parts" {
			out[name] = template.Must(template.Must(frame.Clone()).ParseFS(files, p))
		}
	}
	return out
}

// pageData has the data of the frame, and of the page inside of the frame.
type pageData struct {
	Base, Title    string
	SignedIn, Role string
	CSRF           string
	Nav            []link
	Flash          *flash
	Data           any
}

// link is a link in the navigation.
type link struct {
	To, Text string
	Here     bool
}

// navigationLinks returns the links in the navigation of the caller's role.
func (o *Console) navigationLinks(c *request) []link {
	var links []link
	switch c.caller.Role {
	case identity.Subject:
		links = []link{{To: "me", Text: "Who may see"}, {To: "me/seen", Text: "Who has seen"}, {To: "me/history", Text: "History"}}
		if hasMemories, general := o.Service.HasMemories(c.caller); hasMemories {
			links = append(links, link{To: "me/memories", Text: "Memories"})
			if general {
				links = append(links, link{To: "me/general", Text: "Beliefs"})
			}
		}
	case identity.Admin:
		links = []link{{To: "people", Text: "People"}, {To: "pending", Text: "Requests"}, {To: "why", Text: "Why"}}
	case identity.Operator:
		links = []link{{To: "operations", Text: "Operations"}}
	}
	for i := range links {
		currentPath := strings.TrimPrefix(c.httpRequest.URL.Path, Base)
		links[i].Here = currentPath == links[i].To || links[i].To == "me" && strings.HasPrefix(currentPath, "me/for/") ||
			strings.HasPrefix(currentPath, links[i].To+"/") && strings.HasPrefix(links[i].To, "me/") ||
			links[i].To == "people" && (strings.HasPrefix(currentPath, "people/") || strings.HasPrefix(currentPath, "person/"))
		links[i].To = Base + links[i].To
	}
	return links
}

func (o *Console) serveStyle(w http.ResponseWriter, _ *http.Request) {
	o.sendEmbedded(w, "console.css", "text/css; charset=utf-8")
}

func (o *Console) serveIcon(w http.ResponseWriter, _ *http.Request) {
	o.sendEmbedded(w, "icon.svg", "image/svg+xml")
}

// sendEmbedded sends a file that is embedded in the program.
func (o *Console) sendEmbedded(w http.ResponseWriter, name, kind string) {
	text, err := files.ReadFile(name)
	if err != nil {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "private, max-age=300")
	_, _ = w.Write(text)
}

func dateText(t time.Time) string { return t.UTC().Format("2 January 2006") }
func timeText(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") }
