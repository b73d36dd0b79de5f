package policy

// ReminderAttributes names the session attributes with the user and the channel in which the user talks. From these
// values pgconsent decides when to remind the user that an AI answers.
type ReminderAttributes struct{ User, Channel string }

// ReminderAttributes returns the attributes from which pgconsent decides about reminders. It returns nil if the policy
// has no section reminder.
func (p *Policy) ReminderAttributes() *ReminderAttributes { return p.reminder }

// reminderDecl is the section reminder.
type reminderDecl struct {
	place
	ReminderAttributes
	userAt, channelAt place
}

func (d *documentDecoder) decodeReminder(n *node) {
	decl := reminderDecl{place: n.Place, userAt: n.Place, channelAt: n.Place}
	d.decodeFields(n, "air", map[string]func(*node){
		"user":    d.decodeWordAt(&decl.User, &decl.userAt, "user"),
		"channel": d.decodeWordAt(&decl.Channel, &decl.channelAt, "channel"),
	})
	d.requireFields(n, "air", "user", "channel")
	if existing := d.doc.reminder; existing != nil {
		d.fail(n.Place, "write it once", "air is there already, at %s:%d:%d", existing.File, existing.Line, existing.Column)
		return
	}
	d.doc.reminder = &decl
}

// checkReminder checks that each of the two attributes has one value.
func (c *compiler) checkReminder() *ReminderAttributes {
	decl := c.doc.reminder
	if decl == nil {
		return nil
	}
	for _, named := range []struct {
		position place
		name     string
	}{{decl.userAt, decl.User}, {decl.channelAt, decl.Channel}} {
		if a := c.findAttribute(named.position, named.name); a != nil && a.IsList() {
			c.fail(named.position, "name an attribute that is one value",
				"the attribute %s is a list: a session has one user and one channel", a.Name)
		}
	}
	out := decl.ReminderAttributes
	return &out
}
