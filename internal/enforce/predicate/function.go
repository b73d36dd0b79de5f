package predicate

// Function is a function or operator that an expression may call. No such function raises an error or has side effects,
// whatever its arguments are. If that is true only for some values of an argument, the argument must be a constant.
type Function struct {
	Operator          bool
	Args              []Kind
	TrailingConstants int // the number of arguments, counted from the end, that must be constants
	TrailingOptional  int // the number of arguments, counted from the end, that may be left out
	Result            Kind
	// ByBytes says that the first argument gets the collation "C": with a nondeterministic collation the function would
	// raise an error.
	ByBytes bool

	eval func(args []evalValue) evalValue
}

// Functions are the functions and operators that expressions may call; others are refused. Similar functions are
// missing because they raise errors. Examples are substr for a negative length, || and repeat for results that are too
// long, ->> on json (not jsonb) for \u0000, and jsonb_array_length for a value that is no array. Others are extract and
// date_trunc at the limits of time, regular expressions for some patterns, and arithmetic for overflows. to_char and
// casts from dates are missing because they depend on the session's settings.
var Functions = map[string]Function{
	"lower": {Args: []Kind{Text}, Result: Text, eval: textFunction(lowerFunction)},
	"upper": {Args: []Kind{Text}, Result: Text, eval: textFunction(upperFunction)},
	"btrim": {Args: []Kind{Text, Text}, TrailingOptional: 1, TrailingConstants: 1, Result: Text,
		eval: trimFunction(true, true)},
	"ltrim": {Args: []Kind{Text, Text}, TrailingOptional: 1, TrailingConstants: 1, Result: Text,
		eval: trimFunction(true, false)},
	"rtrim": {Args: []Kind{Text, Text}, TrailingOptional: 1, TrailingConstants: 1, Result: Text,
		eval: trimFunction(false, true)},
	"left":         {Args: []Kind{Text, Number}, TrailingConstants: 1, Result: Text, eval: leftFunction},
	"right":        {Args: []Kind{Text, Number}, TrailingConstants: 1, Result: Text, eval: rightFunction},
	"length":       {Args: []Kind{Text}, Result: Number, eval: lengthFunction},
	"char_length":  {Args: []Kind{Text}, Result: Number, eval: lengthFunction},
	"octet_length": {Args: []Kind{Text}, Result: Number, eval: octetLength},
	"starts_with":  {Args: []Kind{Text, Text}, Result: Bool, ByBytes: true, eval: startsWith},
	"cardinality":  {Args: []Kind{""}, Result: Number, eval: cardinality}, // its argument is a list of any kind
	"jsonb_typeof": {Args: []Kind{JSONB}, Result: Text, eval: jsonType},
	"->>":          {Operator: true, Args: []Kind{JSONB, Text}, TrailingConstants: 1, Result: Text, eval: jsonText},
	"->":           {Operator: true, Args: []Kind{JSONB, Text}, TrailingConstants: 1, Result: JSONB, eval: jsonField},
	"?":            {Operator: true, Args: []Kind{JSONB, Text}, TrailingConstants: 1, Result: Bool, eval: jsonHas},
}
