package console_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

// chromium is a browser that the test controls through pipes by the DevTools protocol, whose messages end with a NUL
// byte.
type chromium struct {
	t       *testing.T
	out     io.Writer
	session string

	mu       sync.Mutex
	nextID   int
	wait     map[int]chan json.RawMessage
	events   []event
	newEvent chan struct{}
}

type event struct {
	Method string
	Params json.RawMessage
}

// browser starts headless Chromium, or skips the test if there is none.
func browser(t *testing.T) *chromium {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("REQUIRE_CHROMIUM") != "" {
			t.Fatal("REQUIRE_CHROMIUM is set and there is no Chromium: apt-get install chromium")
		}
		t.Skip("SKIPPED: there is no Chromium, so that nobody has looked at the pages: apt-get install chromium")
	}
	toRead, toWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromRead, fromWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{toRead, fromWrite}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = toRead.Close()
	_ = fromWrite.Close()
	c := &chromium{t: t, out: toWrite, wait: map[int]chan json.RawMessage{}, newEvent: make(chan struct{}, 1)}
	go c.read(fromRead)
	t.Cleanup(func() {
		c.session = ""
		_, _ = c.try("Browser.close", nil)
		_ = toWrite.Close()
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		_ = fromRead.Close()
	})
	var target struct{ TargetID string }
	c.must("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	c.must("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		c.must(domain+".enable", nil, nil)
	}
	return c
}

func (c *chromium) read(from io.Reader) {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		c.mu.Lock()
		if m.ID != 0 {
			if w := c.wait[m.ID]; w != nil {
				w <- json.RawMessage(line[:len(line)-1])
				delete(c.wait, m.ID)
			}
		} else {
			c.events = append(c.events, event{m.Method, m.Params})
		}
		c.mu.Unlock()
		select {
		case c.newEvent <- struct{}{}:
		default:
		}
	}
}

func (c *chromium) try(method string, params any) (json.RawMessage, error) {
	c.mu.Lock()
	c.nextID++
	id, response := c.nextID, make(chan json.RawMessage, 1)
	c.wait[id] = response
	m := map[string]any{"id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if c.session != "" {
		m["sessionId"] = c.session
	}
	text, err := json.Marshal(m)
	if err == nil {
		_, err = c.out.Write(append(text, 0))
	}
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case line := <-response:
		var a struct {
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, err
		}
		if a.Error != nil {
			return nil, errors.New(method + ": " + a.Error.Message)
		}
		return a.Result, nil
	case <-time.After(tier.Patience):
		return nil, errors.New(method + ": no answer in time")
	}
}

func (c *chromium) must(method string, params, into any) {
	c.t.Helper()
	result, err := c.try(method, params)
	if err == nil && into != nil {
		err = json.Unmarshal(result, into)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// eval runs a script of the test in the page. The pages themselves contain no scripts.
func (c *chromium) eval(script string, into any) {
	c.t.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	c.must("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &out)
	if e := out.ExceptionDetails; e != nil {
		c.t.Fatalf("%s: %s %s", script, e.Text, e.Exception.Description)
	}
	if into != nil {
		if err := json.Unmarshal(out.Result.Value, into); err != nil {
			c.t.Fatalf("%s: %v: %s", script, err, out.Result.Value)
		}
	}
}

// countEvents returns how many events with this name have arrived.
func (c *chromium) countEvents(method string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		if e.Method == method {
			n++
		}
	}
	return n
}

// loading runs an action, and waits until the browser has loaded a page.
func (c *chromium) loading(action func()) {
	c.t.Helper()
	before := c.countEvents("Page.loadEventFired")
	action()
	for deadline := time.After(tier.Patience); c.countEvents("Page.loadEventFired") == before; {
		select {
		case <-c.newEvent:
		case <-deadline:
			c.t.Fatal("no page was loaded")
		}
	}
}

func (c *chromium) open(url string) {
	c.t.Helper()
	c.loading(func() { c.must("Page.navigate", map[string]any{"url": url}, nil) })
}

// press presses a key of the keyboard.
func (c *chromium) press(key string) {
	c.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "Space": 32}
	p := map[string]any{"key": key, "code": key, "windowsVirtualKeyCode": codes[key], "nativeVirtualKeyCode": codes[key], "type": "keyDown"}
	switch key {
	case "Enter":
		p["text"] = "\r"
	case "Space":
		p["key"], p["text"] = " ", " "
	}
	c.must("Input.dispatchKeyEvent", p, nil)
	p["type"] = "keyUp"
	delete(p, "text")
	c.must("Input.dispatchKeyEvent", p, nil)
}

func (c *chromium) write(text string) {
	c.t.Helper()
	// The browser may set the focus by autofocus only after the load event.
	for deadline, focused := time.Now().Add(tier.Patience), false; !focused; time.Sleep(20 * time.Millisecond) {
		if c.eval(`document.hasFocus() && ["INPUT", "TEXTAREA"].includes(document.activeElement.tagName)`, &focused); time.Now().After(deadline) {
			c.t.Fatal("no field has the focus")
		}
	}
	c.must("Input.insertText", map[string]any{"text": text}, nil)
}

// click clicks in the middle of an element.
func (c *chromium) click(selector string) {
	c.t.Helper()
	var center struct{ X, Y float64 }
	c.eval(fmt.Sprintf(
		`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect();
				return {X: r.x + r.width/2, Y: r.y + r.height/2}; })()`, selector), &center)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		c.must("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": center.X, "y": center.Y, "button": "left", "clickCount": 1}, nil)
	}
}

func (c *chromium) size(width, height int, dark bool) {
	c.t.Helper()
	c.must("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	theme := "light"
	if dark {
		theme = "dark"
	}
	c.must("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}}}, nil)
}

// shoot saves a picture of the page to the folder in CONSOLE_SCREENSHOTS, if this variable is set.
func (c *chromium) shoot(name string) {
	c.t.Helper()
	dir := os.Getenv("CONSOLE_SCREENSHOTS")
	if dir == "" {
		return
	}
	var m struct {
		CSSContentSize struct{ Width, Height float64 }
	}
	c.must("Page.getLayoutMetrics", nil, &m)
	var shot struct{ Data string }
	c.must("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true,
		"clip": map[string]any{"x": 0, "y": 0, "width": m.CSSContentSize.Width, "height": min(m.CSSContentSize.Height, 2600), "scale": 1}}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(dir+"/"+strings.ReplaceAll(name, "/", "-")+".png", png, 0o644)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}
