package predicate

// Function is a function or operator that an expression may call. None that is listed here raises an error or has side
// effects, whatever its arguments are; where that is so for some arguments only, these must be constants.
type Function struct {
	Operator  bool
	Args      []Kind
	Constants int // how many arguments, counted from the end, must be constants
	Optional  int // how many arguments, counted from the end, may be left out
	Result    Kind
	Bytes     bool // gets the collation "C": with a nondeterministic one it would raise an error

	eval func(args []value) value
}

// Functions is the closed list. Similar functions are not on it because they raise errors: substr for a negative
// length, || and repeat for results that are too long, ->> on json (not jsonb) for \u0000, jsonb_array_length for a
// value that is no array, extract and date_trunc at the limits of time, regular expressions for some patterns,
// arithmetic for overflows. to_char and casts from dates depend on the session's settings.
var Functions = map[string]Function{
	"lower":        {Args: []Kind{Text}, Result: Text, eval: onText(lower)},
	"upper":        {Args: []Kind{Text}, Result: Text, eval: onText(upper)},
	"btrim":        {Args: []Kind{Text, Text}, Optional: 1, Constants: 1, Result: Text, eval: trim(true, true)},
	"ltrim":        {Args: []Kind{Text, Text}, Optional: 1, Constants: 1, Result: Text, eval: trim(true, false)},
	"rtrim":        {Args: []Kind{Text, Text}, Optional: 1, Constants: 1, Result: Text, eval: trim(false, true)},
	"left":         {Args: []Kind{Text, Number}, Constants: 1, Result: Text, eval: left},
	"right":        {Args: []Kind{Text, Number}, Constants: 1, Result: Text, eval: right},
	"length":       {Args: []Kind{Text}, Result: Number, eval: length},
	"char_length":  {Args: []Kind{Text}, Result: Number, eval: length},
	"octet_length": {Args: []Kind{Text}, Result: Number, eval: octetLength},
	"starts_with":  {Args: []Kind{Text, Text}, Result: Bool, Bytes: true, eval: startsWith},
	"cardinality":  {Args: []Kind{""}, Result: Number, eval: cardinality}, // a list of any kind
	"jsonb_typeof": {Args: []Kind{JSONB}, Result: Text, eval: jsonType},
	"->>":          {Operator: true, Args: []Kind{JSONB, Text}, Constants: 1, Result: Text, eval: jsonText},
	"->":           {Operator: true, Args: []Kind{JSONB, Text}, Constants: 1, Result: JSONB, eval: jsonField},
	"?":            {Operator: true, Args: []Kind{JSONB, Text}, Constants: 1, Result: Bool, eval: jsonHas},
}
