package proxy

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
)

// Equal settings are one map, also after others; settings that were not asked for lately are forgotten.
func TestSharedSettings(t *testing.T) {
	var s sharedSettings
	same := func(a, b map[string]string) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	zone := map[string]string{"TimeZone": "UTC"}
	if got := s.equalTo(zone); !same(got, zone) {
		t.Errorf("the first one is %v", got)
	}
	for i := range maxSharedSettings - 1 {
		other := map[string]string{"TimeZone": "UTC", "application_name": fmt.Sprint(i)}
		if got := s.equalTo(other); !maps.Equal(got, other) {
			t.Errorf("%v became %v", other, got)
		}
	}
	if got := s.equalTo(maps.Clone(zone)); !same(got, zone) {
		t.Error("equal settings are not shared")
	}
	s.equalTo(map[string]string{"TimeZone": "Asia/Tokyo"})
	if got := s.equalTo(maps.Clone(zone)); same(got, zone) || len(s.recent) != maxSharedSettings {
		t.Errorf("%d maps are remembered", len(s.recent))
	}
	if got := s.equalTo(nil); got != nil {
		t.Errorf("no settings became %v", got)
	}
}
